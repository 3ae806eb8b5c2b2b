"""Decides whether each line of some files is in a sink once.

The files are the truth: nobody changes or deletes them during a schedule. Lines differ.

in/**                                   the files
sink/<batch>/<attempt>/task-<k>.csv     path,block,digest in order of reading
sink/<batch>/<attempt>/complete, valid  see `sink`
"""

import hashlib
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from chaos.checker.epochs import differing_replays
from chaos.checker.sink import Attempt, attempts, differing
from chaos.checker.verdict import Verdict, events, examples, printed


class Line(NamedTuple):
    """A line of a file, by the digest of its text."""

    path: str
    digest: str


class Read(NamedTuple):
    """A line as a task has read it: with the block that it was in."""

    line: Line
    block: int


def written(folder: Path) -> dict[Line, int]:
    """Return the lines of all visible files, and the place of each one in its file."""
    found = {}
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        if file.name[0] not in "._":
            for number, text in enumerate(file.read_bytes().splitlines()):
                hashed = hashlib.sha256(text).hexdigest()[:20]
                found[Line(str(file), hashed)] = number
    return found


def delivered(sink: Path) -> "Counter[Line]":
    """Return how often each line is in the attempts that count."""
    return _counted(list(attempts(sink, _read)))


def judge(folder: Path) -> Verdict:
    """Compare the files with the sink."""
    places, found = written(folder / "in"), list(attempts(folder / "sink", _read))
    count = _counted(found)
    lost = [line for line in places if line not in count]
    twice = [line for line, times in count.items() if times > 1]
    foreign = [line for line in count if line not in places]
    swapped = _disordered(found, places)
    replays = [*_differing(found), *differing_replays(events(folder / "history.jsonl"))]
    kinds = {"lost": lost, "duplicated": twice, "unexpected": foreign, "disordered": swapped}
    return Verdict(
        records=len(places),
        lost=len(lost),
        duplicated=len(twice),
        unexpected=len(foreign),
        disordered=len(swapped),
        replayed=len(set(replays)),
        examples=examples(kinds),
    )


def _disordered(found: Iterable[Attempt[Read]], places: dict[Line, int]) -> list[Line]:
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


def _differing(found: Iterable[Attempt[Read]]) -> list[int]:
    """Return the micro-batches whose attempts hold different lines, in whatever blocks."""
    plain = (
        Attempt(each.batch, each.is_valid, (tuple(read.line for read in each.rows()),))
        for each in found
    )
    return differing(plain)


def _counted(found: Iterable[Attempt[Read]]) -> "Counter[Line]":
    return Counter(read.line for each in found if each.is_valid for read in each.rows())


def _read(cells: list[str]) -> Read:
    path, block, hashed = cells
    return Read(Line(path, hashed), int(block))


if __name__ == "__main__":
    sys.exit(printed(judge, Path(sys.argv[1])))
