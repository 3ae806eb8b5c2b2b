"""Options of the data source, and the small things of the packaged application."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from balanced_source.api import Boundedness
from balanced_source.connectors.kafka import (
    EARLIEST,
    LATEST,
    AtOffset,
    OnDataLoss,
    PartitionSet,
    ReadLimits,
    TopicList,
    TopicPattern,
)
from balanced_source.documents.environment import DriverEnvironment
from balanced_source.documents.pipeline import AvailableNow, EventTimeAlignment, Pipeline, Sink
from balanced_source.errors import ConnectorError, InvalidSpecError
from balanced_source_spark.application import load_transform, source_options, spark_interval
from balanced_source_spark.kafka.names import COLUMNS, PLAIN
from balanced_source_spark.kafka.options import read_options
from balanced_source_spark.kafka.settings import PREFETCH
from balanced_source_spark.options import Options, parse_options
from balanced_source_spark.planner import StreamPlanner

BROKER = {"kafka.bootstrap.servers": "b:1"}


def test_the_operator_s_driver_needs_name_namespace_and_uid() -> None:
    options = parse_options(
        {"source": "orders", "namespace": "n", "uid": "u", "includeHeaders": "true"}
    )

    assert (options.source, options.namespace, options.uid) == ("orders", "n", "u")
    assert "headers" in options.read.columns
    assert options.embedded is None


@pytest.mark.parametrize(
    ("option", "want"),
    [
        ({"subscribe": "a, b"}, TopicList(("a", "b"))),
        ({"subscribePattern": "o.*"}, TopicPattern("o.*")),
        ({"assign": '{"a":[0,2]}'}, PartitionSet(frozenset({("a", 0), ("a", 2)}))),
    ],
)
def test_without_an_operator_the_options_are_those_of_spark_s_own_source(
    option: dict[str, str], want: object
) -> None:
    source = parse_options({**BROKER, **option}).embedded

    assert source is not None
    assert source.subscriber == want
    assert source.starting_offsets == LATEST


def test_starting_offsets_and_client_properties_are_taken_over() -> None:
    options = {
        **BROKER,
        "subscribe": "a",
        "startingOffsets": "earliest",
        "kafka.client.rack": "r1",
        "parallelism": "3",
    }

    parsed = parse_options(options)

    assert parsed.embedded is not None
    assert parsed.embedded.starting_offsets == EARLIEST
    assert parsed.embedded.clusters[0].properties == {"client.rack": "r1"}
    assert parsed.parallelism == 3


def test_the_largest_number_is_one_that_is_allowed() -> None:
    assert parse_options({**BROKER, "subscribe": "a", "parallelism": "10000"}).parallelism == 10_000


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "kafka.bootstrap.servers"),
        ({**BROKER}, "exactly one of subscribe"),
        ({**BROKER, "subscribe": "a", "subscribePattern": "b"}, "exactly one of subscribe"),
        (
            {**BROKER, "subscribe": "a", "kafka.group.id": "g"},
            "option kafka.group.id: .*commitGroup",
        ),
        ({**BROKER, "subscribe": "a", "startingOffsets": "middle"}, "earliest, latest or"),
        ({**BROKER, "subscribe": "a", "parallelism": "many"}, "a whole number"),
        (
            {**BROKER, "subscribe": "a", "parallelism": "10001"},
            "parallelism: must be at most 10000",
        ),
        ({**BROKER, "subscribe": "a", "host": ""}, "option host: "),
        ({**BROKER, "assign": "[]"}, "topic"),
        ({**BROKER, "assign": '{"a":[-1]}'}, "begin at 0"),
        ({**BROKER, "assign": '{"a":"12"}'}, "option assign: expected"),
        ({**BROKER, "assign": '{"a":{"0":5}}'}, "option assign: expected"),
        ({**BROKER, "assign": '{"a":[true]}'}, "option assign: expected"),
    ],
)
def test_wrong_options_are_named(options: dict[str, str], says: str) -> None:
    with pytest.raises(InvalidSpecError, match=says):
        parse_options(options)


@pytest.mark.parametrize(
    ("duration", "want"),
    [
        ("0", "0 seconds"),
        ("500ms", "500 milliseconds"),
        ("1m30s", "1 minutes 30 seconds"),
        ("2h", "2 hours"),
    ],
)
def test_durations_in_spark_s_words(duration: str, want: str) -> None:
    assert spark_interval(duration) == want


def test_a_transform_that_cannot_be_loaded_is_reported_under_its_field() -> None:
    with pytest.raises(InvalidSpecError, match=r"nowhere:enrich.*PYTHONPATH"):
        load_transform("nowhere:enrich")
    with pytest.raises(InvalidSpecError, match=r"has no 'dumpss'; did you mean dumps\?"):
        load_transform("json:dumpss")
    with pytest.raises(InvalidSpecError, match=r"has no 'x'\. Correct the name of the function"):
        load_transform("json:x")
    assert load_transform("json:dumps") is not None
    assert load_transform(None) is not None


def test_the_application_passes_its_identity_on() -> None:
    environment = DriverEnvironment(name="orders", namespace="n", uid="u", secrets_dir="/s")
    headers = {"includeHeaders": "true"}
    pipeline = Pipeline(
        checkpoint_location="/ck", sink=Sink(), trigger=AvailableNow(), options=headers
    )

    options = source_options(pipeline, environment)

    want = {
        "source": "orders",
        "namespace": "n",
        "uid": "u",
        "includeHeaders": "true",
        "secretsDir": "/s",
    }
    assert options == want


def test_the_application_passes_on_how_to_read() -> None:
    pipeline = Pipeline(
        checkpoint_location="/ck",
        sink=Sink(),
        trigger=AvailableNow(),
        columns=("value", "timestamp"),
        max_records_per_reader=1000,
        executor_patience="2m",
        accept_checkpoint_of="shop/orders-old",
        alignment=EventTimeAlignment(max_drift="5m", idle_timeout="30s", group="g"),
    )

    passed = source_options(pipeline, DriverEnvironment(name="orders", namespace="n", uid="u"))
    options = parse_options(passed)

    assert (options.read.columns, options.max_records_per_reader) == (("value", "timestamp"), 1000)
    assert options.executor_patience == 120
    assert options.accept_checkpoint_of == "shop/orders-old"
    assert options.alignment is not None
    assert (options.alignment.max_drift, options.alignment.idle_timeout) == (300_000, 30.0)
    assert options.alignment.group == "g"


def test_only_an_operator_can_align_sources() -> None:
    with pytest.raises(InvalidSpecError, match=r"alignmentGroup"):
        parse_options(
            {**BROKER, "subscribe": "t", "alignmentMaxDrift": "5m", "alignmentGroup": "g"}
        )


def test_a_group_needs_an_idle_timeout_above_the_report_interval() -> None:
    with pytest.raises(InvalidSpecError, match=r"alignmentIdleTimeout"):
        parse_options(
            {
                "source": "s",
                "alignmentMaxDrift": "5m",
                "alignmentGroup": "g",
                "alignmentIdleTimeout": "500ms",
            }
        )


def test_alignment_is_off_unless_a_drift_is_given() -> None:
    asked = parse_options(
        {**BROKER, "subscribe": "t", "alignmentMaxDrift": "1m30s", "alignmentIdleTimeout": "500ms"}
    ).alignment

    assert parse_options({**BROKER, "subscribe": "t"}).alignment is None
    assert asked is not None
    assert (asked.max_drift, asked.idle_timeout) == (90_000, 0.5)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("alignmentMaxDrift", "0"),
        ("alignmentMaxDrift", "soon"),
        ("reader", "java"),
        ("prefetchBytes", "0"),
        ("maxRecordsPerReader", "-1"),
        ("executorPatience", "long"),
    ],
)
def test_a_wrong_option_of_the_reader_is_named(option: str, value: str) -> None:
    with pytest.raises(InvalidSpecError, match=rf"option {option}:"):
        parse_options({**BROKER, "subscribe": "t", option: value})


def test_a_query_with_another_connector_than_its_source_s_is_refused() -> None:
    """Local mode: the driver is told the folder, and the connector by its own options."""
    planner = StreamPlanner(Options())
    assignment = SimpleNamespace(settings={"httplog": {"url": "http://a"}})
    planner.__dict__["_runtime"] = SimpleNamespace(
        newest_assignment=lambda **_: assignment, settings=lambda **_: assignment.settings
    )

    for settings in (planner._settings, planner._known_settings):
        with pytest.raises(
            InvalidSpecError, match=r"option connector: the source is of kind httplog.*'kafka'"
        ):
            settings()


def test_a_connector_that_is_not_installed_is_named() -> None:
    with pytest.raises(ConnectorError, match="no connector of kind 'httplog' is installed"):
        parse_options({"connector": "httplog", "source": "orders"})


def test_the_driver_of_the_operator_gets_the_connector() -> None:
    pipeline = Pipeline(
        checkpoint_location="/ck", sink=Sink(), trigger=AvailableNow(), connector="httplog"
    )
    environment = DriverEnvironment(name="orders", namespace="n", uid="u")

    assert source_options(pipeline, environment)["connector"] == "httplog"
    assert "connector" not in source_options(replace(pipeline, connector="kafka"), environment)


def subscribed(**options: str) -> object:
    parsed = parse_options({"kafka.bootstrap.servers": "b:1", **options})
    source: Any = parsed.embedded
    return source.subscriber


def test_topics_may_be_a_list_a_pattern_or_partitions() -> None:
    assert subscribed(subscribe="b, a,b") == TopicList(("b", "a"))
    assert subscribed(subscribepattern="orders.*") == TopicPattern("orders.*")
    assert subscribed(assign='{"t":[1,0]}') == PartitionSet(frozenset({("t", 0), ("t", 1)}))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"subscribepattern": "orders-("}, "option subscribePattern: at character 8 of"),
        ({"subscribe": "a,,b"}, "option subscribe: expected names of topics"),
        ({"assign": '{"t":[-1]}'}, "option assign: .* names no partition: numbers"),
        ({"assign": '{"t":[-1,0,7]}'}, "option assign: .* names no partition: numbers"),
        ({"assign": "{}"}, "option assign: .* names no partition"),
        ({"assign": "[]"}, "option assign: expected"),
        ({"subscribe": "a", "assign": '{"t":[0]}'}, "set exactly one of subscribe"),
        ({}, "set exactly one of subscribe"),
    ],
)
def test_a_wrong_choice_of_topics_is_named(options: dict[str, str], says: str) -> None:
    with pytest.raises(InvalidSpecError, match=says):
        subscribed(**options)


def test_a_query_without_any_option_hears_of_other_kinds_of_source() -> None:
    with pytest.raises(InvalidSpecError, match="set the option connector, such as files"):
        parse_options({})
    with pytest.raises(InvalidSpecError) as caught:
        parse_options({"connector": "kafka"})
    assert "connector" not in str(caught.value)


def test_a_query_may_end_at_offsets() -> None:
    parsed = parse_options(
        {"kafka.bootstrap.servers": "b:1", "subscribe": "t", "endingoffsets": '{"t":{"0":7}}'}
    )
    source: Any = parsed.embedded
    assert source.stopping_offsets.wishes("t", 0) == (AtOffset(7),)
    assert source.starting_offsets == LATEST
    assert source.boundedness is Boundedness.BOUNDED

    with pytest.raises(InvalidSpecError, match="endingOffsets: partition 0 of topic 'u' is not"):
        parse_options(
            {"kafka.bootstrap.servers": "b:1", "subscribe": "t", "endingoffsets": '{"u":{"0":7}}'}
        )


def test_limits_of_a_micro_batch_are_those_of_the_options() -> None:
    options = {
        "kafka.bootstrap.servers": "b:1",
        "subscribe": "t",
        "maxoffsetspertrigger": "1",
        "maxoffsetspersplit": "2",
        "maxbytespertrigger": "3",
        "minoffsetspertrigger": "4",
        "maxtriggerdelay": "5s",
        "failondataloss": "false",
        "discoveryintervalseconds": "0",
        "commitgroup": "g",
    }
    source: Any = parse_options(options).embedded
    batch: Any = parse_options(options, is_batch=True).embedded

    assert source.limits == ReadLimits(
        max_records=1, max_records_per_split=2, max_bytes=3, min_records=4, max_delay=5.0
    )
    assert (source.on_data_loss, source.commit_group) == (OnDataLoss.CONTINUE, "g")
    assert source.discovery_interval is None
    assert batch.limits == ReadLimits(), "they are of micro-batches"
    assert (batch.starting_offsets, batch.stopping_offsets) == (EARLIEST, LATEST)


@pytest.mark.parametrize(
    ("columns", "says"),
    [("key,keys", "option columns: "), ("key,key", "names a column twice: name each once")],
)
def test_wrong_columns_are_named(columns: str, says: str) -> None:
    with pytest.raises(InvalidSpecError, match=says):
        read_options({"columns": columns})


def test_columns_are_those_of_spark_unless_others_are_chosen() -> None:
    assert read_options({}).columns == PLAIN
    assert read_options({"includeheaders": "true"}).columns == COLUMNS
    assert read_options({"columns": "value, key"}).columns == ("value", "key")
    assert read_options({}).prefetch == PREFETCH
    assert read_options({"prefetchbytes": "7"}).prefetch == 7


def test_a_batch_query_that_starts_at_latest_is_rejected() -> None:
    """It would read nothing, without a word; Spark's own source rejects it, too."""
    options = {**BROKER, "subscribe": "a", "startingOffsets": "latest"}

    with pytest.raises(InvalidSpecError, match=r"startingOffsets: a batch query .* read nothing"):
        parse_options(options, is_batch=True)
    assert parse_options(options).embedded is not None
