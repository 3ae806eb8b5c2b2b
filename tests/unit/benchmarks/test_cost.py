"""What a benchmark counts as the cost of a contestant."""

import subprocess
import sys

from benchmarks.reading.cost import Cost

BURN = """
import sys, time
while time.process_time() < float(sys.argv[1]): pass
print("burnt", flush=True)
sys.stdin.read()
"""


def burning(seconds: float) -> subprocess.Popen[str]:
    """A process that takes so much of a processor, and waits then."""
    command = [sys.executable, "-c", BURN, str(seconds)]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)  # noqa: S603
    assert process.stdout is not None
    process.stdout.readline()
    return process


def test_a_process_that_has_ended_counts() -> None:
    with Cost() as cost:
        burning(0.6).communicate()

    assert cost.cpu >= 0.2


def test_what_a_process_spent_before_does_not_count_even_if_it_ends() -> None:
    process = burning(0.6)

    with Cost() as cost:
        process.communicate()

    assert 0.0 <= cost.cpu < 0.6
