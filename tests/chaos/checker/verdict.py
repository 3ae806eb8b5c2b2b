"""What a checker of a source without brokers has found."""

import dataclasses
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

_EXAMPLES: Final = 5


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What was found; counts of records, and of micro-batches whose attempts or plans differ."""

    records: int
    lost: int
    duplicated: int
    unexpected: int
    disordered: int
    replayed: int
    excused: int = 0
    epochs: str | None = None
    examples: tuple[str, ...] = ()

    @property
    def is_ok(self) -> bool:
        """Return whether nothing is wrong."""
        return not (
            self.lost or self.duplicated or self.unexpected or self.disordered or self.replayed
        )


def examples(kinds: Mapping[str, Sequence[object]]) -> tuple[str, ...]:
    """Return a few of each kind of wrong records, for people."""
    return tuple(f"{kind}: {list(some[:_EXAMPLES])}" for kind, some in kinds.items() if some)


def events(history: Path) -> Iterator[dict[str, object]]:
    """Read the notes of the driver; the last line of a killed one may be half."""
    for line in history.read_text().splitlines() if history.exists() else ():
        try:
            yield json.loads(line)
        except ValueError:
            continue


def printed(judge: Callable[[Path], Verdict], folder: Path) -> int:
    """Print the verdict about a folder as JSON; 1 if anything is wrong."""
    verdict = judge(folder)
    sys.stdout.write(json.dumps(dataclasses.asdict(verdict)) + "\n")
    return 0 if verdict.is_ok else 1
