"""A whole source over numbers in one process, and a sink that counts what was committed."""

from collections import Counter
from typing import Any

from balanced_source.api import AsyncCall
from balanced_source.errors import ContractViolationError
from balanced_source.testing.local_run import LocalRun
from support.numbers import NumbersSplit
from support.numbers_source import NumbersSource

Record = tuple[str, int]


def ranges(count: int = 7, size: int = 20) -> tuple[NumbersSplit, ...]:
    return tuple(NumbersSplit(name=f"{number:02}", stop=size) for number in range(count))


def nothing(call: AsyncCall) -> Any:
    raise ContractViolationError(f"nobody executes {type(call).__name__}")


class Scene:
    """A run, and a sink that keeps what was committed.

    What a crash cuts off was never delivered.
    """

    def __init__(
        self, source: NumbersSource, parallelism: int = 2, made: type[LocalRun[Record]] = LocalRun
    ) -> None:
        self.source = source
        self.type = made
        self.pending: list[tuple[int, Record]] = []
        self.delivered: Counter[Record] = Counter()
        self.by_reader: Counter[int] = Counter()
        self.parallelism = parallelism
        self.run = self._made(None)
        self.run.start()

    def _made(self, before: LocalRun[Record] | None) -> LocalRun[Record]:
        known: dict[str, Any] = {}
        if before is not None:
            known = {
                "state": before.state,
                "offset": before.offset,
                "incarnation": before.incarnation,
            }
        return self.type(
            self.source,
            self.source.create_reader,
            nothing,
            lambda subtask, record, _: self.pending.append((subtask, record)),
            self._commit,
            parallelism=self.parallelism,
            clock=lambda: 0.0,
            **known,
        )

    def _commit(self) -> None:
        self.delivered.update(record for _, record in self.pending)
        self.by_reader.update(subtask for subtask, _ in self.pending)
        self.pending.clear()

    def crash(self) -> None:
        """Everything that is not stored is gone."""
        self.pending.clear()
        self.run.close()
        self.run = self._made(self.run)
        self.run.start()

    def check(self) -> None:
        expected = Counter((s.name, n) for s in self.source.ranges for n in range(s.next, s.stop))
        assert self.delivered == expected
