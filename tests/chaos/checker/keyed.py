"""Decides whether each numbered record of some keys is in a sink once, in the order of its key.

What was written is the truth: no record changes or vanishes during a schedule.

written.csv                             key,number of each record, in the order of writing
history.json                            number below which records have no order among themselves,
                                        but are in earlier micro-batches than others of their key
sink/<batch>/<attempt>/task-<k>.csv     key,number in order of reading
sink/<batch>/<attempt>/complete, valid  see `sink`
"""

import csv
import json
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from chaos.checker.epochs import differing_replays
from chaos.checker.sink import Attempt, attempts, differing
from chaos.checker.verdict import Verdict, events, examples, printed


class Record(NamedTuple):
    """A record: numbers of a key grow in the order of writing."""

    key: str
    number: int


def written(file: Path) -> set[Record]:
    """Return what was written."""
    with file.open(newline="") as text:
        return set(map(_record, csv.reader(text)))


def delivered(sink: Path) -> "Counter[Record]":
    """Return how often each record is in the attempts that count."""
    return _counted(attempts(sink, _record))


def judge(folder: Path) -> Verdict:
    """Compare what was written with the sink."""
    truth, found = written(folder / "written.csv"), list(attempts(folder / "sink", _record))
    count = _counted(found)
    lost = sorted(truth - count.keys())
    twice = [record for record, times in count.items() if times > 1]
    foreign = sorted(count.keys() - truth)
    valid = [each for each in found if each.is_valid]
    swapped = _disordered(valid, history := _history(folder)) + _late(valid, history)
    replays = {*differing(found), *differing_replays(events(folder / "history.jsonl"))}
    kinds = {"lost": lost, "duplicated": twice, "unexpected": foreign, "disordered": swapped}
    return Verdict(
        records=len(truth),
        lost=len(lost),
        duplicated=len(twice),
        unexpected=len(foreign),
        disordered=len(swapped),
        replayed=len(replays),
        examples=examples(kinds),
    )


def _history(folder: Path) -> int:
    file = folder / "history.json"
    return int(json.loads(file.read_text())) if file.exists() else 0


def _disordered(found: Iterable[Attempt[Record]], history: int) -> list[Record]:
    """Return records behind a later one of their key, but those of the history.

    Tasks of a micro-batch have no order, so a key must be in one.
    """
    wrong: list[Record] = []
    newest: dict[str, int] = {}
    for each in found:
        reader: dict[str, int] = {}
        live = ((n, r) for n, task in enumerate(each.tasks) for r in task if r.number >= history)
        for number, record in live:
            is_apart = reader.setdefault(record.key, number) != number
            if is_apart or record.number <= newest.get(record.key, -1):
                wrong.append(record)
            newest[record.key] = max(record.number, newest.get(record.key, -1))
    return wrong


def _late(found: Iterable[Attempt[Record]], history: int) -> list[Record]:
    """Return records of the history that are not before all others of their key."""
    wrong: list[Record] = []
    has_begun: set[str] = set()
    for each in found:
        has_begun |= {record.key for record in each.rows() if record.number >= history}
        wrong += (r for r in each.rows() if r.number < history and r.key in has_begun)
    return wrong


def _counted(found: Iterable[Attempt[Record]]) -> "Counter[Record]":
    return Counter(record for each in found if each.is_valid for record in each.rows())


def _record(cells: list[str]) -> Record:
    key, number = cells
    return Record(key, int(number))


if __name__ == "__main__":
    sys.exit(printed(judge, Path(sys.argv[1])))
