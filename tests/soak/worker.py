"""Worker processes that read tasks, as Spark's Python workers do.

Reused, any worker for any reader.
"""

import multiprocessing
import pickle
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection

from pyspark import cloudpickle


def serve(tasks: Connection) -> None:
    """Read tasks until the other side closes.

    Answers the number of rows, or the error of a task.
    """
    while True:
        try:
            reader, partition = pickle.loads(tasks.recv_bytes())  # noqa: S301 - from our own parent
        except EOFError:
            return
        try:
            tasks.send(sum(batch.num_rows for batch in reader.read(partition)))
        except Exception as error:  # noqa: BLE001 - the driver reports it
            tasks.send(f"{type(error).__name__}: {error}")


class TaskFailedError(Exception):
    """A task has failed; the message has its error."""


class Workers:
    """Processes that share the tasks of each micro-batch.

    Args:
        count: of processes.
    """

    def __init__(self, count: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipes: list[Connection] = []
        for number in range(count):
            here, there = context.Pipe()
            process = context.Process(
                target=serve, args=(there,), name=f"worker-{number}", daemon=True
            )
            process.start()
            there.close()
            self._pipes.append(here)
        self._threads = ThreadPoolExecutor(count)
        self._turn = 0

    def run(self, reader: object, partitions: Sequence[object]) -> int:
        """Read all partitions; returns the number of rows.

        Raises:
            TaskFailedError: a task has failed.
        """
        shares: list[list[object]] = [[] for _ in self._pipes]
        for partition in partitions:
            # the next worker, whichever reader it served before
            shares[self._turn % len(shares)].append(partition)
            self._turn += 1
        done = self._threads.map(
            lambda number: self._share(number, reader, shares[number]), range(len(shares))
        )
        return sum(done)

    def _share(self, number: int, reader: object, partitions: Sequence[object]) -> int:
        rows, pipe = 0, self._pipes[number]
        for partition in partitions:
            pipe.send_bytes(cloudpickle.dumps((reader, partition)))  # type: ignore[no-untyped-call]
            answer = pipe.recv()
            if isinstance(answer, str):
                raise TaskFailedError(answer)
            rows += answer
        return rows
