"""Where a journal may be, and what a source that is read with one cannot be asked for."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from balanced_source.documents.journal import FetchLimits
from balanced_source.documents.pipeline import AvailableNow, Pipeline, Sink
from balanced_source.errors import InvalidSpecError
from balanced_source_spark import journal_of_application
from balanced_source_spark.journal.offset_log import CommitOrder, check_logged
from balanced_source_spark.journal_of_application import check_progress, journal_of
from balanced_source_spark.journal_options import journal_at, journal_options
from balanced_source_spark.journal_stores.folder import FolderJournal
from balanced_source_spark.journal_stores.objects import ObjectJournal
from support.tapes import Shelf, TapeHalf

PIPELINE = Pipeline(
    checkpoint_location="/ck/", sink=Sink(), trigger=AvailableNow(), connector="tapes"
)


def test_options_that_are_not_given_have_defaults() -> None:
    made = journal_options({"journallocation": "/shared/j"})

    assert made.store == FolderJournal(Path("/shared/j"))
    assert made.limits == FetchLimits(
        max_records=100_000, max_bytes=2**26, max_millis=10_000, wait_millis=1000
    )
    assert (made.poll_interval, made.min_batches, made.end_after) == (1.0, 100, None)


def test_options_that_are_given_are_used() -> None:
    said = {"fetchmaxrecords": "5", "fetchmaxbytes": "6", "fetchmaxtime": "7s", "fetchwait": "80ms"}
    made = journal_options(
        {"journallocation": "/j", "pollinterval": "9s", "journalminbatches": "10", **said}
        | {"endafter": "5m"}
    )

    assert made.limits == FetchLimits(max_records=5, max_bytes=6, max_millis=7000, wait_millis=80)
    assert (made.poll_interval, made.min_batches, made.end_after) == (9.0, 10, 300.0)


@pytest.mark.parametrize("location", ["file:///shared/a%20b", "file:/shared/a%20b", "/shared/a b"])
def test_a_folder_is_a_path_or_a_file_uri(location: str) -> None:
    assert journal_at(location) == FolderJournal(Path("/shared/a b"))


@pytest.mark.parametrize(
    "location", ["s3://b/p", "s3a://b/p", "gs://b/p", "abfss://c@a.dfs.core.windows.net/p"]
)
def test_an_object_store_that_puts_only_if_there_is_none_can_hold_a_journal(location: str) -> None:
    assert journal_at(location) == ObjectJournal(location)


@pytest.mark.parametrize(
    ("location", "said"),
    [
        ("", "is missing: this source is read with a journal"),
        ("relative/j", "an absolute path"),
        ("s3://[x", "is no URL"),
        ("hdfs://nn/j", "neither a folder nor an object store"),
        ("file://host/j", "neither a folder nor an object store"),
        ("dbfs:/j", "neither a folder nor an object store"),
        ("s3a:///j", "names no bucket"),
    ],
)
def test_a_store_that_cannot_hold_a_journal_is_rejected(location: str, said: str) -> None:
    with pytest.raises(InvalidSpecError, match=rf"option journalLocation: .*{said}"):
        journal_at(location)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("maxRecordsPerReader", "5"),
        ("fetchMaxRecords", "0"),
        ("fetchMaxTime", "0"),
        ("endAfter", "0"),
        ("fetchWait", "soon"),
        ("pollInterval", "soon"),
        ("journalMinBatches", "many"),
    ],
)
def test_a_wrong_option_is_named(option: str, value: str) -> None:
    with pytest.raises(InvalidSpecError, match=rf"option {option}"):
        journal_options({"journallocation": "/j", option.lower(): value})


@pytest.fixture
def tapes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_of_application, "half_of", lambda _: TapeHalf(Shelf()))


@pytest.mark.usefixtures("tapes")
def test_the_packaged_application_keeps_its_journal_in_its_checkpoint() -> None:
    assert journal_of(PIPELINE, retained="7") == {
        "journalLocation": "/ck/journal",
        "journalMinBatches": "7",
    }
    relative = journal_of(replace(PIPELINE, checkpoint_location="ck"), retained=None)
    assert relative == {"journalLocation": str(Path.cwd() / "ck" / "journal")}
    uri = journal_of(replace(PIPELINE, checkpoint_location="file:///ck"), retained=None)
    assert uri == {"journalLocation": "file:///ck/journal"}
    bucket = journal_of(replace(PIPELINE, checkpoint_location="s3a://b/ck/"), retained=None)
    assert bucket == {"journalLocation": "s3a://b/ck/journal"}


@pytest.mark.usefixtures("tapes")
def test_the_packaged_application_rejects_settings_that_break_its_journal() -> None:
    with pytest.raises(
        InvalidSpecError, match=r"^spec.application.pipeline.checkpointLocation: .*object store"
    ):
        journal_of(replace(PIPELINE, checkpoint_location="hdfs://nn/ck"), retained=None)
    sink = Sink(options={"asyncprogresstrackingenabled": "True"})
    with pytest.raises(
        InvalidSpecError, match=r"^spec.application.pipeline.sink.options.asyncProgressTracking"
    ):
        journal_of(replace(PIPELINE, sink=sink), retained=None)
    check_progress({"asyncProgressTrackingEnabled": "false"}, field="optionsFrom")
    with pytest.raises(
        InvalidSpecError, match=r"^spec.application.pipeline.sink.optionsFrom.asyncProgressTracking"
    ):
        check_progress({"asyncProgressTrackingEnabled": "true"}, field="optionsFrom")


def test_other_sources_have_no_journal() -> None:
    assert journal_of(replace(PIPELINE, connector="kafka"), retained="7") == {}


def entry(offset: object) -> str:
    """Of Spark's offset log: a version, metadata, a source without an offset, and another one."""
    return f"v1\n{{}}\n-\n{json.dumps(offset)}"


def test_a_micro_batch_that_is_not_in_the_offset_log_is_refused() -> None:
    """Asynchronous progress tracking writes it later, or never."""
    check_logged(entry({"n": 10}), {"n": 10})
    with pytest.raises(InvalidSpecError, match="asyncProgressTrackingEnabled: must not be used"):
        check_logged(entry({"n": 10}), {"n": 11})


FIRST, SECOND, THIRD = {"n": 1}, {"n": 2}, {"n": 3}


def test_spark_commits_what_lies_before_a_new_micro_batch() -> None:
    order = CommitOrder()
    order.offered(SECOND)
    order.check(FIRST, SECOND, is_first=True)

    order.offered(THIRD)
    order.committed(SECOND)
    order.check(SECOND, THIRD, is_first=False)
    # several actions in foreachBatch plan it several times
    order.check(SECOND, THIRD, is_first=False)


@pytest.mark.parametrize("committed", [None, FIRST])
def test_a_new_micro_batch_before_the_commit_of_the_one_before_is_refused(
    committed: dict[str, int] | None,
) -> None:
    order = CommitOrder()
    if committed is not None:
        order.committed(committed)
    order.offered(THIRD)

    with pytest.raises(InvalidSpecError, match="asyncProgressTrackingEnabled: must not be used"):
        order.check(SECOND, THIRD, is_first=False)


def test_a_replay_and_a_micro_batch_without_data_of_this_source_say_nothing() -> None:
    """After a restart Spark plans the newest logged micro-batch before it asks for anything."""
    order = CommitOrder()
    order.check(FIRST, SECOND, is_first=False)
    order.offered(SECOND)
    order.check(SECOND, SECOND, is_first=False)


@pytest.mark.parametrize("text", [None, "v2\nsomething else", "", "v1\n{}\nno JSON"])
def test_an_offset_log_that_cannot_be_read_says_nothing(text: str | None) -> None:
    check_logged(text, {"n": 1})
