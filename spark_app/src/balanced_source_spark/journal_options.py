"""Options for sources whose ends are not known when a micro-batch is planned."""

import os
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from balanced_source.documents.environment import retained_of
from balanced_source.documents.journal import FetchLimits
from balanced_source.host.journal import JournalStore
from balanced_source_spark.contract.option_table import Option, rejected
from balanced_source_spark.contract.values import number, positive, seconds
from balanced_source_spark.journal_stores.location import journal_store

LOCATION: Final = "journalLocation"

MIN_BATCHES: Final = 100
"""Micro-batches whose records are kept: Spark's default of
``spark.sql.streaming.minBatchesToRetain``."""

BATCH: Final = "batch-"
"""Names of journals of batch queries begin so. They are deleted when they are old."""

BATCH_LIFE: Final = 7 * 24 * 3600.0
"""Seconds that the journal of a batch query is kept: no task of it runs longer."""

MAX_RECORDS: Final = 100_000
MAX_BYTES: Final = 64 * 1024 * 1024


_GROUP: Final = "Sources that are read with a journal"

OPTIONS: Final = (
    Option(
        name=LOCATION,
        group=_GROUP,
        meaning=(
            "Where the journal is: a folder that the driver and all executors share (a path or a"
            " `file:` URI), or an object store that can put an object only if there is none"
            " (`s3://bucket/prefix`, `s3a:`, `gs:`, `abfss:`), with the endpoint and credentials of"
            " the environment. HDFS is rejected. The packaged application takes the folder"
            " `journal` of its checkpoint."
        ),
    ),
    Option(
        name="journalMinBatches",
        group=_GROUP,
        default="`100`",
        meaning=(
            "Micro-batches whose records are kept. At least Spark's"
            " `spark.sql.streaming.minBatchesToRetain`: with fewer, a Spark checkpoint that is"
            " restored from an older copy is rejected. Under the operator, the default is that"
            " setting in `sparkConf`, for any program. Spark does not tell a source what a program"
            " sets in its session. Where the journal is a folder of the Spark checkpoint, records"
            " of all micro-batches in the offset log are kept anyway. Elsewhere, set this option if"
            " your program retains more than 100."
        ),
    ),
    Option(
        name="fetchMaxRecords",
        group=_GROUP,
        default="`100000`",
        meaning="Maximum number of records that one reader fetches in a micro-batch.",
    ),
    Option(
        name="fetchMaxBytes",
        group=_GROUP,
        default="64 MiB",
        meaning=(
            "Maximum number of bytes of rows that one reader fetches in a micro-batch. Beyond 32"
            " MiB, they wait in a temporary file."
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
            "A reader ends its part of a micro-batch after this time without a record. Must be"
            " longer than one request to the source takes."
        ),
    ),
    Option(
        name="pollInterval",
        group=_GROUP,
        default="`1s`",
        meaning=(
            "Time between two micro-batches that find nothing, for a source that cannot tell"
            " whether it has new records."
        ),
    ),
    Option(
        name="endAfter",
        group=_GROUP,
        meaning=(
            "Time after which a query that ends by itself (`AvailableNow`, `Once`, batch) ends, if"
            " the source cannot tell where its splits end. What was not read until then is for the"
            " next run. Without it, such a query ends when every reader has found nothing for"
            " `fetchWait`, which never happens if records come faster than that."
        ),
    ),
)
"""In the order of the reference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalOptions:
    """See the reference page of the options.

    Attributes:
        store: where the journals are.
        limits: of each reader in a micro-batch.
        poll_interval: seconds after which a micro-batch begins that may find nothing.
        min_batches: micro-batches whose records are kept.
        end_after: seconds after which a query that ends by itself and does not know its ends has
            ended; None: when it is caught up.
        is_batch: whether the journal is of a batch query, which cannot say when it has ended.
    """

    store: JournalStore
    limits: FetchLimits
    poll_interval: float = 1.0
    min_batches: int = MIN_BATCHES
    end_after: float | None = None
    is_batch: bool = False

    def new_name(self) -> str:
        """Return a name for a journal."""
        # Never used before: records of another life of the query would be taken for its own.
        return f"{BATCH if self.is_batch else ''}{uuid.uuid4().hex}"


def journal_options(options: Mapping[str, str]) -> JournalOptions:
    """Read the options; keys are lower case.

    Raises:
        InvalidSpecError: names the option.
    """
    _check_others(options)
    return JournalOptions(
        store=journal_at(options.get("journallocation", "")),
        limits=FetchLimits(
            max_records=positive(options, "fetchMaxRecords") or MAX_RECORDS,
            max_bytes=positive(options, "fetchMaxBytes") or MAX_BYTES,
            max_millis=_millis(options, "fetchMaxTime", "10s"),
            wait_millis=_millis(options, "fetchWait", "1s"),
        ),
        poll_interval=seconds(options.get("pollinterval", "1s"), "pollInterval"),
        min_batches=number(options, "journalMinBatches", _retained(), least=1),
        end_after=_millis(options, "endAfter", "") / 1000 if "endafter" in options else None,
    )


def journal_at(location: str) -> JournalStore:
    """Return the store of a location; nothing is asked yet.

    Raises:
        InvalidSpecError: it is missing, relative, or in a store that cannot create a record only if
            there is none.
    """
    if not location:
        raise rejected(
            LOCATION,
            "is missing: this source is read with a journal. Name a folder that the driver and all "
            "executors share, such as a folder beside the Spark checkpoint, or an object store",
        )
    return journal_store(location, field=f"option {LOCATION}")


def _retained() -> int:
    """Return what Spark retains, as far as the operator has told; else Spark's default."""
    return retained_of(os.environ) or MIN_BATCHES


def _check_others(options: Mapping[str, str]) -> None:
    """Options that need known ends."""
    if "maxrecordsperreader" in options:
        raise rejected(
            "maxRecordsPerReader",
            "is for sources whose ends are known when a micro-batch is planned: use"
            " fetchMaxRecords",
        )


def _millis(options: Mapping[str, str], name: str, default: str) -> int:
    millis = round(seconds(options.get(name.lower(), default), name) * 1000)
    if millis < 1:
        raise rejected(name, "must be longer than 0")
    return millis
