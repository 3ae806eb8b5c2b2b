"""Runs the tasks of a micro-batch in worker processes, with Spark's four attempts per task."""

import random
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from chaos.light.frames import Answer, Task
from chaos.light.task_worker import Daemon, Worker

ATTEMPTS = 4
"""As spark.task.maxFailures."""


class TaskFailedError(Exception):
    """A task has failed as often as it may."""


class TaskPool:
    """Workers that are reused from task to task, and replaced when they die.

    Make it before the first thread of the process: workers are forked.

    Args:
        workers: how many run at once.
        drops: decides for each first attempt after how many rows it is dropped, see `write_rows`.
    """

    def __init__(self, workers: int, drops: Callable[[], int | None]) -> None:
        self._drops = drops
        self._daemon = Daemon()
        self._idle: SimpleQueue[Worker] = SimpleQueue()
        self._threads = ThreadPoolExecutor(workers)
        for _ in range(workers):
            self._idle.put(self._daemon.worker())

    def run(
        self,
        reader: bytes,
        partitions: Sequence[bytes],
        folder: Path,
        *,
        on_done: Callable[[], None],
    ) -> int:
        """Run a task per partition; returns the number of rows.

        Args:
            reader: pickled.
            partitions: pickled.
            folder: gets a file per task.
            on_done: called after each task.

        Raises:
            TaskFailedError: with the reason of the last attempt.
        """
        tasks = [
            Task(reader=reader, partition=p, file=folder / f"task-{k}.csv")
            for k, p in enumerate(partitions)
        ]
        lock = threading.Lock()

        def one(task: Task) -> int:
            rows = self._attempts(task)
            with lock:
                on_done()
            return rows

        return sum(self._threads.map(one, tasks))

    def close(self) -> None:
        """End the workers that are idle."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        while not self._idle.empty():
            self._idle.get().end()

    def _attempts(self, task: Task) -> int:
        reasons: list[str] = []
        for attempt in range(ATTEMPTS):
            drop = self._drops() if attempt == 0 else None
            answer = self._one_attempt(
                Task(reader=task.reader, partition=task.partition, file=task.file, drop_after=drop)
            )
            if answer.error is None:
                return answer.rows
            reasons.append(answer.error)
            sys.stderr.write(
                f"attempt {attempt + 1} of task {task.file.stem} failed: {answer.error}\n"
            )
        raise TaskFailedError(
            f"task {task.file.stem} failed {ATTEMPTS} times, the last time with {reasons[-1]}"
        )

    def _one_attempt(self, task: Task) -> Answer:
        worker = self._idle.get()
        try:
            answer: Answer = worker.run(task)
        except EOFError:
            worker.end()
            worker = self._daemon.worker()
            answer = Answer(error="the worker process died")
        self._idle.put(worker)
        return answer


def random_drops(seed: str, share: float) -> Callable[[], int | None]:
    """Return a source of drops: a share of all first attempts ends after a few rows."""
    dice = random.Random(seed)
    return lambda: dice.choice((1, 5, 50)) if dice.random() < share else None
