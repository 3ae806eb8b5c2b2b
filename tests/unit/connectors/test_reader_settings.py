"""Settings of readers in the assignment: typed values, and sentences for malformed ones."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from balanced_source.connectors.files import (
    BlockSplit,
    File,
    FileReaderSettings,
    FilesSource,
    Format,
    OnFileLoss,
    Store,
)
from balanced_source.connectors.hybrid import HybridReaderSettings
from balanced_source.connectors.kafka import KafkaReaderSettings, with_former
from balanced_source.connectors.kinesis import (
    KinesisSource,
    OnShardLoss,
    Server,
    ShardReaderSettings,
)
from balanced_source.errors import CorruptDocumentError, TransientDiscoveryError
from balanced_source.host.ends import Mark
from balanced_source_spark.contract.half import Query
from balanced_source_spark.files.hooks import FilesHooks
from balanced_source_spark.files.options import file_read_options
from balanced_source_spark.kinesis.half import KinesisSparkHalf
from support.planner_context import CONTEXT

PLACE = {"endpoint": "http://store:9000", "region": "eu", "secret": "keys"}
FILES = {"store": PLACE, "scheme": "s3://", "onLoss": "Skip"}
KINESIS = {**PLACE, "onLoss": "Continue"}
KAFKA = {"clusters": {"a": {"bootstrapServers": "a:1", "properties": {}, "secrets": []}}}

OF: Mapping[str, Callable[[Mapping[str, Any]], object]] = {
    "files": FileReaderSettings.of,
    "kinesis": ShardReaderSettings.of,
    "kafka": KafkaReaderSettings.of,
    "hybrid": HybridReaderSettings.of,
}


def files_hooks(settings: Mapping[str, Any]) -> FilesHooks:
    read = file_read_options({"fileformat": "text"})
    return FilesHooks(
        replace(  # type: ignore[arg-type] - the context of another query
            CONTEXT, query=Query(client_id="me", read=read), known_settings=lambda: settings
        )
    )


def test_the_json_matches_assignments_of_released_versions() -> None:
    store = Store(endpoint="http://store:9000", region="eu", secret=PLACE["secret"])
    files = FileReaderSettings(store=store, scheme="s3://", on_loss=OnFileLoss.SKIP)
    inferred = replace(files, schema="id BIGINT")
    server = Server(endpoint="http://store:9000", region="eu", secret=PLACE["secret"])
    shards = ShardReaderSettings(server=server, on_loss=OnShardLoss.CONTINUE)
    parts = HybridReaderSettings(parts={"files": {"files": FILES}, "kafka": {"kafka": KAFKA}})

    assert (files.to_json(), FileReaderSettings.of({"files": FILES})) == (FILES, files)
    assert FileReaderSettings.from_json(inferred.to_json()) == inferred
    assert inferred.to_json() == {**FILES, "schema": "id BIGINT"}
    assert (shards.to_json(), ShardReaderSettings.of({"kinesis": KINESIS})) == (KINESIS, shards)
    assert parts.to_json() == {"files": {"files": FILES}, "kafka": {"kafka": KAFKA}}
    assert HybridReaderSettings.of({"hybrid": parts.to_json()}) == parts


def test_sources_write_what_their_readers_read() -> None:
    files = FilesSource(paths=("s3://b/*",), kind_of_file=Format.TEXT, schema="value STRING")
    shards = KinesisSource(streams=("s",), on_loss=OnShardLoss.CONTINUE)

    assert FileReaderSettings.of(files.reader_settings()) == FileReaderSettings(
        scheme="s3://", schema="value STRING"
    )
    assert ShardReaderSettings.of(shards.reader_settings()).on_loss is OnShardLoss.CONTINUE


@pytest.mark.parametrize(
    ("kind", "wrong", "why"),
    [
        ("files", {"scheme": "", "onLoss": "Fail"}, "'store' is missing"),
        ("files", {**FILES, "onLoss": "Maybe"}, "'Maybe' is not a valid OnFileLoss"),
        ("files", ["s3://"], "TypeError"),
        ("kinesis", PLACE, "'onLoss' is missing"),
        ("kinesis", {**KINESIS, "onLoss": 3}, "3 is not a valid OnShardLoss"),
        ("kafka", {"clusters": {"a": {"properties": {}}}}, "'bootstrapServers' is missing"),
        ("kafka", {"clusters": ["a"]}, "AttributeError"),
        ("hybrid", {"files": 1}, "part files is a int"),
        ("hybrid", 1, "AttributeError"),
    ],
)
def test_wrong_content_is_a_sentence_that_names_connector_and_member(
    kind: str, wrong: Any, why: str
) -> None:
    with pytest.raises(
        CorruptDocumentError, match=f"settings for readers of connector {kind} .* malformed"
    ) as caught:
        OF[kind]({kind: wrong})

    assert why in str(caught.value)
    assert str(caught.value).endswith("do not edit the assignment")


@pytest.mark.parametrize("kind", ["files", "kinesis"])
def test_a_task_without_settings_of_its_connector_says_so(kind: str) -> None:
    """The source was changed to another connector since the micro-batch was planned."""
    with pytest.raises(CorruptDocumentError, match=f"no settings for readers of connector {kind}"):
        OF[kind]({"other": {}})


def test_malformed_settings_of_a_former_assignment_are_a_sentence_too() -> None:
    with pytest.raises(CorruptDocumentError, match="'secrets' is missing"):
        with_former(
            {"kafka": KAFKA},
            {"kafka": {"clusters": {"b": {"bootstrapServers": "b:1", "properties": {}}}}},
        )


def test_planning_of_files_waits_for_an_assignment() -> None:
    split = BlockSplit(file=File(1, "/in/0", 10), begin=0, offset=0, stop=10)
    mark = Mark(position=0, identity=split.file.identity)

    with pytest.raises(TransientDiscoveryError, match="before the first assignment"):
        files_hooks({}).ends("files", [split.split_id], {split.split_id: mark})
    with pytest.raises(CorruptDocumentError, match="'scheme' is missing"):
        files_hooks({"files": {"store": PLACE}}).ends("files", [split.split_id], {})
    assert not files_hooks({}).may_skip()
    assert files_hooks({"files": FILES}).may_skip()


def test_nothing_of_a_stream_is_skipped_before_an_assignment_allows_it() -> None:
    half, query = KinesisSparkHalf(), Query(client_id="me", read=None)

    assert not half.may_skip(query, {})
    assert half.may_skip(query, {"kinesis": KINESIS})
