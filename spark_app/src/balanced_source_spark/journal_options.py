"""Options for sources whose ends are not known when a micro-batch is planned."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from balanced_source.documents.journal import FetchLimits
from balanced_source.names import shown
from balanced_source_spark.contract.option_table import Option, rejected
from balanced_source_spark.contract.values import number, positive, seconds

LOCATION: Final = "journalLocation"

MIN_BATCHES: Final = 100
"""Micro-batches whose records are kept: Spark's default of ``spark.sql.streaming.minBatchesToRetain``."""

MAX_RECORDS: Final = 100_000
MAX_BYTES: Final = 64 * 1024 * 1024


_GROUP: Final = "Sources that are read with a journal"

OPTIONS: Final = (
    Option(
        name=LOCATION,
        group=_GROUP,
        meaning=(
            "Folder of the journal, shared by the driver and all executors: a path or a `file:` URI. Object "
            "stores and HDFS are rejected. The packaged application takes the folder `journal` of its checkpoint."
        ),
    ),
    Option(
        name="journalMinBatches",
        group=_GROUP,
        default="`100`",
        meaning=(
            "Micro-batches whose records are kept. At least `spark.sql.streaming.minBatchesToRetain`, which "
            "the packaged application takes."
        ),
    ),
    Option(
        name="fetchMaxRecords",
        group=_GROUP,
        default="`100000`",
        meaning="Records that one reader fetches in a micro-batch at most.",
    ),
    Option(
        name="fetchMaxBytes",
        group=_GROUP,
        default="64 MiB",
        meaning=(
            "Bytes of rows that one reader fetches in a micro-batch at most. Beyond 32 MiB, they wait in a "
            "temporary file."
        ),
    ),
    Option(
        name="fetchMaxTime",
        group=_GROUP,
        default="`10s`",
        meaning="Longest time that one reader fetches in a micro-batch.",
    ),
    Option(
        name="fetchWait",
        group=_GROUP,
        default="`1s`",
        meaning=(
            "A reader ends its part of a micro-batch when nothing has come for this time. Must be longer than "
            "one request to the source takes."
        ),
    ),
    Option(
        name="pollInterval",
        group=_GROUP,
        default="`1s`",
        meaning=(
            "Time between two micro-batches that find nothing, for a source that cannot tell whether there is "
            "something to read."
        ),
    ),
)
"""In the order of the reference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalOptions:
    """See the reference page of the options.

    Attributes:
        folder: of the journals; driver and executors share it.
        limits: of each reader in a micro-batch.
        poll_interval: seconds after which a micro-batch begins that may find nothing.
        min_batches: micro-batches whose records are kept.
    """

    folder: Path
    limits: FetchLimits
    poll_interval: float = 1.0
    min_batches: int = MIN_BATCHES


def journal_options(options: Mapping[str, str]) -> JournalOptions:
    """Read the options; keys are lower case.

    Raises:
        InvalidSpecError: names the option.
    """
    _check_others(options)
    return JournalOptions(
        folder=journal_folder(options.get("journallocation", "")),
        limits=FetchLimits(
            max_records=positive(options, "fetchMaxRecords") or MAX_RECORDS,
            max_bytes=positive(options, "fetchMaxBytes") or MAX_BYTES,
            max_millis=_millis(options, "fetchMaxTime", "10s"),
            wait_millis=_millis(options, "fetchWait", "1s"),
        ),
        poll_interval=seconds(options.get("pollinterval", "1s"), "pollInterval"),
        min_batches=number(options, "journalMinBatches", MIN_BATCHES, least=1),
    )


def journal_folder(location: str) -> Path:
    """Return the folder of a location: a path, or a ``file:`` URI.

    Raises:
        InvalidSpecError: it is missing, relative, or in a store that cannot create a file only if there is none.
    """
    if not location:
        raise rejected(
            LOCATION,
            "is missing: this source is read with a journal. Name a folder that the driver and all "
            "executors share, such as a folder beside the Spark checkpoint",
        )
    parts = urlsplit(location)
    if parts.scheme not in ("", "file") or parts.netloc not in ("", "localhost"):
        raise rejected(
            LOCATION,
            f"{shown(location)} is no folder: a journal must create a file only if there is none, "
            "which is supported on file systems with hard links (local, NFS), not on object stores "
            "or HDFS. Name a folder that the driver and all executors share",
        )
    path = Path(unquote(parts.path) if parts.scheme else location)
    if not path.is_absolute():
        raise rejected(LOCATION, f"expected an absolute path, not {shown(location)}")
    return path


def _check_others(options: Mapping[str, str]) -> None:
    """Options that need known ends."""
    for name, use in (
        ("maxRecordsPerReader", "use fetchMaxRecords"),
        ("alignmentMaxDrift", "event-time alignment needs them"),
    ):
        if name.lower() in options:
            raise rejected(name, f"is for sources whose ends are known when a micro-batch is planned; {use}")


def _millis(options: Mapping[str, str], name: str, default: str) -> int:
    millis = round(seconds(options.get(name.lower(), default), name) * 1000)
    if millis < 1:
        raise rejected(name, "must be longer than 0")
    return millis
