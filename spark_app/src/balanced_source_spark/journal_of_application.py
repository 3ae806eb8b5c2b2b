"""Where the packaged application keeps the journal of its source: in its Spark checkpoint."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from balanced_source.documents.pipeline import Pipeline
from balanced_source.errors import InvalidSpecError
from balanced_source_spark.contract.half import half_of
from balanced_source_spark.contract.readers import ReadersHalf
from balanced_source_spark.journal_options import journal_at

_ASYNC: Final = "asyncProgressTrackingEnabled"
_FIELD: Final = "spec.application.pipeline"


def journal_of(pipeline: Pipeline, *, retained: str | None) -> Mapping[str, str]:
    """Return the options of a source that is read with a journal; none for another one.

    Args:
        pipeline: what the application does.
        retained: Spark's ``spark.sql.streaming.minBatchesToRetain``.

    Raises:
        InvalidSpecError: the checkpoint is where no journal can be, or the sink asks for
            asynchronous progress.
        ConnectorError: the connector is not installed, or is broken.
    """
    if not isinstance(half_of(pipeline.connector), ReadersHalf):
        return {}
    check_progress(pipeline.sink.options, field="options")
    location = f"{_absolute(pipeline.checkpoint_location)}/journal"
    try:
        journal_at(location)
    except InvalidSpecError as error:
        raise InvalidSpecError(
            f"the source is read with a journal, which lies in the checkpoint. {error}",
            field=f"{_FIELD}.checkpointLocation",
        ) from error
    return {
        "journalLocation": location,
        **({"journalMinBatches": retained} if retained is not None else {}),
    }


def _absolute(location: str) -> str:
    """Spark takes a relative path from the driver's folder, which executors do not have."""
    is_url = re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", location) is not None
    return location.rstrip("/") if is_url else str(Path(location).absolute())


def check_progress(options: Mapping[str, str], *, field: str) -> None:
    """Check that a sink asks for no asynchronous progress.

    Args:
        options: of the sink.
        field: of `sink`, where they come from.

    Raises:
        InvalidSpecError: it does.
    """
    for name, value in options.items():
        if name.lower() == _ASYNC.lower() and value.lower() == "true":
            raise InvalidSpecError(
                "must not be used with a source that is read with a journal: its micro-batches must"
                " be in the offset log before they run. Leave it out",
                field=f"{_FIELD}.sink.{field}.{_ASYNC}",
            )
