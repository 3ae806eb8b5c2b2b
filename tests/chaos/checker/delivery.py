"""Exactly once: what the logs held against what the sink holds."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from chaos.checker import spark_files
from chaos.checker.broker_log import Record, load
from chaos.checker.notices import Notice, notices
from chaos.checker.sink import Attempt, Row, attempts, record

_EXAMPLES: Final = 5

Split = tuple[str, str, int]
"""Cluster, topic, partition."""


class Bound(NamedTuple):
    """Which offsets of a split of the first topic of its name are expected.

    From the first one, up to the stop.
    """

    topic_id: str
    first: int
    stop: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the checker found.

    Attributes:
        records: expected, and either delivered or excused.
        lost: expected, neither delivered nor excused.
        duplicated: rows beyond the first of their record.
        unexpected: rows of records that no log has ever held, or outside of the bounds.
        disordered: rows with a smaller offset than the row before them, of the same split in the
            same task.
        replayed: micro-batches of which two whole attempts differ.
        excused: records that are gone and named by a notice, or that no one can name.
        examples: what is wrong, in words.
    """

    records: int = 0
    lost: int = 0
    duplicated: int = 0
    unexpected: int = 0
    disordered: int = 0
    replayed: int = 0
    excused: int = 0
    examples: tuple[str, ...] = ()

    @property
    def is_ok(self) -> bool:
        """Return whether nothing is wrong."""
        return not (
            self.lost or self.duplicated or self.unexpected or self.disordered or self.replayed
        )


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything that a verdict rests on."""

    ever: frozenset[Record]
    final: frozenset[Record]
    bounds: Mapping[Split, Bound]
    attempts: tuple[Attempt[Row], ...]
    notices: tuple[Notice, ...]
    cut: frozenset[Record] = frozenset()
    """Records that an unclean election took before they were delivered: no one can name them."""

    @classmethod
    def read(cls, folder: Path) -> "Evidence":
        """Read a folder."""
        files = sorted((folder / "dumps").glob("*.csv"))
        ever = frozenset(record for file in files for record in load(file))
        final = frozenset(load(folder / "dumps" / "final.csv"))
        bounds = {
            _split(name): Bound(*found)
            for name, found in json.loads((folder / "bounds.json").read_text()).items()
        }
        told = notices(folder / "logs", {(r.topic, r.partition) for r in ever - final})
        of_spark = [
            a
            for host, sink in spark_files.sinks(folder).items()
            for a in spark_files.attempts(sink, host)
        ]
        found = of_spark or attempts(folder / "sink", record)
        return cls(ever, final, bounds, tuple(found), tuple(told), _cut(folder))


def judge(evidence: Evidence) -> Verdict:
    """Compare logs and sink."""
    delivered = Counter(
        row for attempt in evidence.attempts if attempt.is_valid for row in attempt.rows()
    )
    expected = {record for record in evidence.ever if _is_expected(record, evidence.bounds)}
    missing = {record for record in expected if _row(record) not in delivered}
    gone = missing - evidence.final
    excused = {
        r
        for r in gone
        if r in evidence.cut
        or any(n.excuses(r.topic, r.topic_id, r.partition, r.offset) for n in evidence.notices)
    }
    lost = missing - excused
    known = {_row(record) for record in expected}
    unexpected = [row for row in delivered if row not in known]
    twice = {row: count for row, count in delivered.items() if count > 1}
    disordered, replayed = (
        _disordered(evidence.attempts),
        _replayed_differently(evidence.attempts, evidence),
    )
    return Verdict(
        records=len(expected) - len(lost),
        lost=len(lost),
        duplicated=sum(twice.values()) - len(twice),
        unexpected=len(unexpected),
        disordered=len(disordered),
        replayed=len(replayed),
        excused=len(excused),
        examples=(
            *_examples("lost", sorted(lost)),
            *_examples("delivered more than once", sorted(twice)),
            *_examples("delivered but not expected", sorted(unexpected)),
            *_examples("out of order", disordered),
            *_examples("replayed differently: host and micro-batch", replayed),
        ),
    )


def _is_named(record: Record, told: Iterable[Notice]) -> bool:
    return any(
        n.excuses(record.topic, record.topic_id, record.partition, record.offset) for n in told
    )


def _cut(folder: Path) -> frozenset[Record]:
    """Return the records that were undelivered before a log was cut, and are gone after it."""
    file, found = folder / "cuts.jsonl", set[Record]()
    for line in file.read_text().splitlines() if file.exists() else ():
        told = json.loads(line)
        before, after = (set(load(folder / "dumps" / told[name])) for name in ("before", "after"))
        reached = {
            (c, t, p, topic_id): position for c, t, p, topic_id, position in told["committed"]
        }
        found |= {
            r
            for r in before - after
            if r.offset >= reached.get((r.cluster, r.topic, r.partition, r.topic_id), 0)
        }
    return frozenset(found)


def _is_expected(record: Record, bounds: Mapping[Split, Bound]) -> bool:
    bound = bounds.get((record.cluster, record.topic, record.partition))
    if bound is None or bound.topic_id != record.topic_id:
        return True
    return record.offset >= bound.first and (bound.stop is None or record.offset < bound.stop)


def _row(record: Record) -> Row:
    return Row(record.cluster, record.topic, record.partition, record.offset, record.digest)


def _disordered(found: Iterable[Attempt[Row]]) -> list[Row]:
    wrong = []
    for task in (task for attempt in found for task in attempt.tasks):
        newest: dict[Split, int] = {}
        for row in task:
            split = (row.cluster, row.topic, row.partition)
            if row.offset <= newest.get(split, -1):
                wrong.append(row)
            newest[split] = row.offset
    return wrong


def _replayed_differently(
    found: Iterable[Attempt[Row]], evidence: Evidence
) -> list[tuple[int, int]]:
    """Return host and number of micro-batches whose attempts differ.

    A sink that keeps the first attempt must hold the same as one that keeps the last one.

    Records that are gone from the log by now may be missing in a later attempt.
    """
    there = {_row(record) for record in evidence.final}
    seen: dict[tuple[int, int], list[frozenset[Row]]] = {}
    for attempt in found:
        seen.setdefault((attempt.host, attempt.batch), []).append(frozenset(attempt.rows()) & there)
    return [batch for batch, contents in sorted(seen.items()) if len(set(contents)) > 1]


def _examples(what: str, found: Iterable[object]) -> list[str]:
    chosen = list(found)
    more = f" … {len(chosen)} in all" if len(chosen) > _EXAMPLES else ""
    shown = [str(tuple(one)) if isinstance(one, tuple) else str(one) for one in chosen[:_EXAMPLES]]
    return [f"{what}: {'; '.join(shown)}{more}"] if chosen else []


def _split(name: str) -> Split:
    cluster, topic, partition = name.split("/")
    return cluster, topic, int(partition)
