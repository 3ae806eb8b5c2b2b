"""``python -m chaos.light.task_worker``: a worker process as Spark has one per core.

It takes tasks from standard input, answers on standard output, and ends with its parent.
"""

import os
import sys

from chaos.light.frames import receive, run, send


def main() -> None:
    """Serve tasks. Prints of readers must not get into the frames."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while True:
        try:
            task = receive(sys.stdin.buffer)
        except EOFError:
            return
        send(out, run(task))


if __name__ == "__main__":
    main()
