"""Decides whether each line of some files is in a sink once.

The files are the truth: nobody changes or deletes them during a schedule. Lines differ.

in/**                                   the files
sink/<batch>/<attempt>/task-<k>.csv     path,block,digest in order of reading
sink/<batch>/<attempt>/complete, valid  see `sink`
"""

import csv
import dataclasses
import hashlib
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from chaos.checker.epochs import differing_replays

_EXAMPLES: Final = 5


class Line(NamedTuple):
    """A line of a file, by the digest of its text."""

    path: str
    digest: str


class Read(NamedTuple):
    """A line as a task has read it: with the block that it was in."""

    line: Line
    block: int


class Attempt(NamedTuple):
    """A whole attempt at a micro-batch; lines per task, in the order of reading."""

    batch: int
    is_valid: bool
    tasks: tuple[tuple[Read, ...], ...]

    def lines(self) -> Iterator[Line]:
        """All lines."""
        yield from (read.line for task in self.tasks for read in task)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What was found; counts of lines, and of micro-batches whose attempts or plans differ."""

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


def written(folder: Path) -> dict[Line, int]:
    """Return the lines of all visible files, and the place of each one in its file."""
    found = {}
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        if file.name[0] not in "._":
            for number, text in enumerate(file.read_bytes().splitlines()):
                hashed = hashlib.sha256(text).hexdigest()[:20]
                found[Line(str(file), hashed)] = number
    return found


def attempts(sink: Path) -> Iterator[Attempt]:
    """Read all whole attempts."""
    for folder in sorted(sink.glob("[0-9]*")) if sink.exists() else ():
        valid = (folder / "valid").read_text() if (folder / "valid").exists() else ""
        for attempt in sorted(folder.iterdir()):
            if (attempt / "complete").exists():
                tasks = tuple(tuple(_lines(f)) for f in sorted(attempt.glob("task-*.csv")))
                yield Attempt(int(folder.name), attempt.name == valid, tasks)


def delivered(sink: Path) -> "Counter[Line]":
    """Return how often each line is in the attempts that count."""
    return Counter(line for each in attempts(sink) if each.is_valid for line in each.lines())


def judge(folder: Path) -> Verdict:
    """Compare the files with the sink."""
    places, found = written(folder / "in"), list(attempts(folder / "sink"))
    count = Counter(line for each in found if each.is_valid for line in each.lines())
    lost = [line for line in places if line not in count]
    twice = [line for line, times in count.items() if times > 1]
    foreign = [line for line in count if line not in places]
    swapped = _disordered(found, places)
    replays = [*_differing(found), *differing_replays(_events(folder / "history.jsonl"))]
    kinds = {"lost": lost, "duplicated": twice, "unexpected": foreign, "disordered": swapped}
    return Verdict(
        records=len(places),
        lost=len(lost),
        duplicated=len(twice),
        unexpected=len(foreign),
        disordered=len(swapped),
        replayed=len(set(replays)),
        examples=tuple(f"{kind}: {some[:_EXAMPLES]}" for kind, some in kinds.items() if some),
    )


def _disordered(found: Iterable[Attempt], places: dict[Line, int]) -> list[Line]:
    """Return lines that a task has read after a later line of their block."""
    wrong = []
    for task in (task for each in found for task in each.tasks):
        newest: dict[tuple[str, int], int] = {}
        for read in task:
            place, block = places.get(read.line, -1), (read.line.path, read.block)
            if place <= newest.get(block, -1):
                wrong.append(read.line)
            newest[block] = place
    return wrong


def _differing(found: Iterable[Attempt]) -> list[int]:
    """Return the micro-batches whose attempts hold different lines."""
    seen: dict[int, set[frozenset[Line]]] = {}
    for each in found:
        seen.setdefault(each.batch, set()).add(frozenset(each.lines()))
    return [batch for batch, contents in seen.items() if len(contents) > 1]


def _lines(file: Path) -> Iterator[Read]:
    with file.open(newline="") as text:
        for path, block, hashed in csv.reader(text):
            yield Read(Line(path, hashed), int(block))


def _events(history: Path) -> Iterator[dict[str, object]]:
    """Read the notes of the driver; the last line of a killed one may be half."""
    for line in history.read_text().splitlines() if history.exists() else ():
        try:
            yield json.loads(line)
        except ValueError:
            continue


def main(folder: Path) -> int:
    """Print the verdict about a folder as JSON; 1 if anything is wrong."""
    verdict = judge(folder)
    sys.stdout.write(json.dumps(dataclasses.asdict(verdict)) + "\n")
    return 0 if verdict.is_ok else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
