"""What arrived: the files of Spark's file sink, by the sink's own log of committed files."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

Key = tuple[str, str, int]
"""Cluster, topic, partition."""

_COLUMNS = ["cluster", "topic", "partition", "offset"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """What a sink holds, against what should be there.

    Attributes:
        delivered: rows.
        lost: records that are in no row.
        duplicated: rows beyond the first of their record.
        unexpected: rows of records that were never produced.
        examples: what is wrong, in words, for some partitions.
    """

    delivered: int
    lost: int
    duplicated: int
    unexpected: int
    examples: tuple[str, ...] = ()

    @property
    def is_exact(self) -> bool:
        """Every record exactly once."""
        return not (self.lost or self.duplicated or self.unexpected)


def committed_files(path: Path) -> list[Path]:
    """Files of the micro-batches that the sink has committed.

    Others are left-overs of failed attempts.

    The sink must not be partitioned: all files lie in `path` itself.
    """
    log = path / "_spark_metadata"
    if not log.is_dir():
        return []
    entries = {entry.name: entry for entry in log.iterdir() if not entry.name.startswith(".")}
    compacted = [
        int(name.removesuffix(".compact")) for name in entries if name.endswith(".compact")
    ]
    first = max(compacted, default=-1)
    names = [f"{first}.compact"] if compacted else []
    names += sorted((name for name in entries if name.isdigit() and int(name) > first), key=int)
    # The writer may have seen the folder elsewhere (a volume): only the names count.
    return [path / Path(file).name for name in names for file in _logged(entries[name])]


def files_by_batch(path: Path) -> Iterator[tuple[int, list[Path]]]:
    """Yield the number of each micro-batch with the files that the sink has committed for it.

    Raises:
        ValueError: the sink's log is compacted, and does not say it any more.
    """
    log = path / "_spark_metadata"
    if any(entry.name.endswith(".compact") for entry in log.iterdir()):
        raise ValueError(
            f"the log in {log} is compacted: it does not say which files belong to a micro-batch"
        )
    for batch in sorted(int(entry.name) for entry in log.iterdir() if entry.name.isdigit()):
        yield batch, [path / Path(file).name for file in _logged(log / str(batch))]


def rows(path: Path) -> int:
    """Number of committed rows; cheap, from the files' footers."""
    return sum(pq.read_metadata(file).num_rows for file in committed_files(path))


def check_delivery(
    path: Path, expected: Mapping[Key, int], *, others: Sequence[Path] = ()
) -> Delivery:
    """Compare the committed rows with the records 0 … n − 1 that each partition has.

    Args:
        path: folder of the sink; parquet files with the columns cluster, topic, partition and
            offset.
        expected: number of records per partition.
        others: folders of further hosts of the source.
    """
    files = [file for folder in (path, *others) for file in committed_files(folder)]
    tables = [pq.read_table(file, columns=_COLUMNS) for file in files]
    table = pa.concat_tables(tables) if tables else _empty()
    counts = table.group_by(_COLUMNS).aggregate([([], "count_all")])
    checks = [
        _check(key, counts, expected.get(key, 0)) for key in sorted({*_keys(counts), *expected})
    ]
    return Delivery(
        delivered=table.num_rows,
        lost=sum(check.lost for check in checks),
        duplicated=table.num_rows - counts.num_rows,
        unexpected=sum(check.unexpected for check in checks),
        examples=tuple(text for check in checks for text in check.examples),
    )


def _check(key: Key, counts: pa.Table, end: int) -> Delivery:
    """One partition; `counts` has a row for each record that arrived."""
    mine = pc.and_(pc.equal(counts["cluster"], key[0]), pc.equal(counts["topic"], key[1]))
    found = counts.filter(pc.and_(mine, pc.equal(counts["partition"], key[2])))
    offsets = found["offset"]
    known = pc.sum(pc.and_(pc.greater_equal(offsets, 0), pc.less(offsets, end))).as_py() or 0
    twice = pc.sum(pc.greater(found["count_all"], 1)).as_py() or 0
    lost, unexpected = end - known, found.num_rows - known
    examples: tuple[str, ...] = ()
    if lost or unexpected or twice:
        gap = sorted(set(range(end)).difference(offsets.to_pylist()))[:3]
        name = "/".join(map(str, key))
        examples = (
            (
                f"{name}: {lost} of {end} lost (first {gap}), {twice} more than once, {unexpected}"
                " unknown"
            ),
        )
    return Delivery(
        delivered=found.num_rows,
        lost=lost,
        duplicated=twice,
        unexpected=unexpected,
        examples=examples,
    )


def _keys(counts: pa.Table) -> set[Key]:
    distinct = counts.group_by(_COLUMNS[:3]).aggregate([]).to_pylist()
    return {(row["cluster"], row["topic"], row["partition"]) for row in distinct}


def _empty() -> pa.Table:
    types = (pa.string(), pa.string(), pa.int32(), pa.int64())
    return pa.table({name: pa.array([], kind) for name, kind in zip(_COLUMNS, types, strict=True)})


def _logged(entry: Path) -> Iterator[str]:
    _version, *lines = entry.read_text().splitlines()
    for line in lines:
        action = json.loads(line)
        if action.get("action", "add") == "add":
            yield unquote(urlparse(action["path"]).path)
