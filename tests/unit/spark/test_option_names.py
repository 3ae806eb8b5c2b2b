"""Options are a strict model.

A name that does nothing is said, and an invalid value is rejected under its name.
"""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from balanced_source.errors import InvalidSpecError
from balanced_source_adapters.connectors import Connectors
from balanced_source_adapters.registrations import Registration
from balanced_source_spark import options
from balanced_source_spark.contract.half import SparkHalf
from balanced_source_spark.contract.option_table import Option, check_options, where_options_are
from balanced_source_spark.kafka.option_names import OPTIONS
from balanced_source_spark.options import _checked, parse_options
from balanced_source_spark.planner import StreamPlanner
from support.tapes import Shelf, TapeHalf

TOPIC = {"kafka.bootstrap.servers": "b:1", "subscribe": "orders"}


def rejection(**options: str) -> str:
    """What is said about the options beside those that read a topic."""
    with pytest.raises(InvalidSpecError) as raised:
        parse_options(
            {**TOPIC, **{name.replace("__", "."): value for name, value in options.items()}}
        )
    return str(raised.value)


@pytest.mark.parametrize(
    ("name", "suggested"),
    [
        ("startingOffset", "startingOffsets"),
        ("paralelism", "parallelism"),
        ("MAXOFFSETPERTRIGGER", "maxOffsetsPerTrigger"),
        ("failOnDataloss_", "failOnDataLoss"),
    ],
)
def test_an_unknown_option_is_an_error_that_suggests_the_nearest_name(
    name: str, suggested: str
) -> None:
    said = rejection(**{name: "1"})

    assert repr(name.lower()) in said
    assert f"did you mean {suggested}?" in said


def test_a_family_of_options_is_no_suggestion() -> None:
    """`kafka.*` stands for all settings of the client."""
    assert "did you mean" not in rejection(kafka_="1")


def test_all_unknown_options_are_named_at_once() -> None:
    said = rejection(subscrib="a", zzzzzz="b")

    assert "'subscrib' (did you mean subscribe?)" in said
    assert "'zzzzzz'." in said


@pytest.mark.parametrize("name", ["path", "paths"])
def test_load_with_a_path_says_what_to_call(name: str) -> None:
    assert rejection(**{name: "orders"}).startswith(
        f"option {name}: this source has no path: call load() without"
    )


def test_options_that_spark_adds_for_tables_are_accepted() -> None:
    parse_options({**TOPIC, "owner": "root", "provider": "balanced", "option.subscribe": "orders"})


def test_names_are_not_case_sensitive() -> None:
    parse_options(
        {"KAFKA.bootstrap.servers": "b:1", "SUBSCRIBE": "orders", "includeheaders": "TRUE"}
    )


@pytest.mark.parametrize(
    "option", [option for option in OPTIONS if option.instead], ids=lambda option: option.name
)
def test_an_option_of_spark_s_own_source_gives_one_warning_that_says_what_happens_instead(
    option: Option,
) -> None:
    parsed = parse_options({**TOPIC, option.name: "10"})

    with capture_logs() as lines:
        StreamPlanner(parsed).stop()

    warned = [line["event"] for line in lines if line["log_level"] == "warning"]
    assert warned == [f"option {option.name} has no effect: {option.instead}"]


def test_an_option_that_the_manifest_overrides_is_reported() -> None:
    parsed = parse_options(
        {"source": "orders", "subscribe": "orders", "parallelism": "3", "columns": "value"}
    )

    assert parsed.notes == (
        "option parallelism, subscribe has no effect: the BalancedSource says it. Change it there",
    )


def test_options_of_a_connector_that_declares_none_are_not_checked() -> None:
    half: Any = SimpleNamespace(options=lambda: SparkHalf.options(half), notes=lambda _: ())

    assert _checked({"anything": "1"}, half) == ()


class Tapes:
    """The half of a connector from another package."""

    reference = ""

    def __init__(self, reference: str = "") -> None:
        self.reference = reference

    def options(self) -> tuple[Option, ...]:
        return Option(name="reel", meaning="Number of the reel."), Option(
            name="side", meaning="Side of the tape."
        )

    def notes(self, options: Mapping[str, str]) -> tuple[str, ...]:
        return ()


@pytest.mark.parametrize(
    ("reference", "described"),
    [
        ("", ""),
        ("https://tapes.example/options", " (described in https://tapes.example/options)"),
        ("the README of tapes", " (described in the README of tapes)"),
    ],
)
def test_an_unknown_option_of_a_plug_in_names_the_plug_in_s_own(
    monkeypatch: pytest.MonkeyPatch, reference: str, described: str
) -> None:
    """Our page of options has none of them."""
    tapes = Connectors(
        [Registration(kind="tapes", reference="tapes:Connector", package="tapes-connector 2.1")]
    )
    monkeypatch.setattr(options, "installed", lambda: tapes)
    monkeypatch.setenv("BALANCED_SOURCE_DOCUMENTATION_URL", "https://wiki.test/bs")
    half: Any = Tapes(reference)

    with pytest.raises(InvalidSpecError) as caught:
        _checked({"connector": "tapes", "real": "1"}, half)

    assert str(caught.value) == (
        "options: unknown option 'real' (did you mean reel?). Connector 'tapes' of tapes-connector"
        " 2.1 has the options "
        f'reel, side{described}. Those of all connectors are on the page "Options" of the'
        " documentation of Balanced Source: https://wiki.test/bs/reference/options/"
    )


def test_a_plug_in_without_options_is_said_to_have_none() -> None:
    said = where_options_are("tapes", (), package="tapes-connector 2.1", reference="")

    assert said.startswith("Connector 'tapes' of tapes-connector 2.1 has the options none. Those")


REEL = Option(name="reelNumber", meaning="Number of the reel.", is_embedded=True, is_required=True)


@pytest.mark.parametrize("given", [{}, {"reelnumber": ""}])
def test_a_required_option_that_is_missing_is_named(given: Mapping[str, str]) -> None:
    with pytest.raises(InvalidSpecError) as caught:
        check_options(given, [REEL], is_embedded=True)

    assert str(caught.value) == "option reelNumber: must be set. Number of the reel."


def test_a_required_option_is_not_asked_for_where_it_has_no_effect() -> None:
    assert check_options({}, [REEL], is_embedded=False) == ()
    assert check_options({"reelnumber": "1"}, [REEL], is_embedded=True) == ()


def test_an_unknown_option_of_a_built_in_connector_names_the_page(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BALANCED_SOURCE_DOCUMENTATION_URL", "https://wiki.test/bs")
    assert rejection(zzz="1").endswith(
        "'zzz'. All names are on the page \"Options\" of the documentation:"
        " https://wiki.test/bs/reference/options/"
    )


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("strategy", "Sticky", "expected one of RoundRobin, Hash, LoadAware, not 'Sticky'"),
        ("strategy", "roundrobin", "did you mean RoundRobin?"),
        ("parallelism", "0", "must be at least 1, not 0"),
        ("parallelism", "many", "expected a whole number, not 'many'"),
        ("includeHeaders", "yes", "expected true or false, not 'yes'"),
        ("failOnDataLoss", "maybe", "expected true or false, not 'maybe'"),
        ("maxOffsetsPerTrigger", "0", "must be at least 1, not 0"),
        ("discoveryIntervalSeconds", "-1", "must be at least 0, not -1"),
        ("startTimeoutSeconds", "0", "must be at least 1, not 0"),
        ("columns", "valu", "did you mean value?"),
        ("subscribe", "orders,,", "expected names of topics"),
        ("startingOffsets", '{"oders":{"0":1}}', "partition 0 of topic 'oders' is not subscribed"),
        ("startingOffsets", '{"orders":{"-1":1}}', "orders/-1 is not a partition"),
        (
            "startingOffsetsByTimestamp",
            '{"oders":{"0":1}}',
            "partition 0 of topic 'oders' is not subscribed",
        ),
        ("endingOffsets", '{"oders":{"0":1}}', "partition 0 of topic 'oders' is not subscribed"),
        ("endingOffsets", "earliest", "reading cannot end at earliest"),
        ("kafka.bootstrap.servers", "localhost:", "expected host:port"),
        ("kafka.group.id", "g", "set commitGroup"),
        ("kafka.auto.offset.reset", "earliest", "set startingOffsets"),
        ("kafka.ssl.truststore.location", "/t.jks", "set ssl.ca.location"),
        ("kafka.max.poll.records", "5", "set maxOffsetsPerTrigger"),
        ("kafka.key.deserializer", "x", "rows have keys and values as bytes"),
    ],
)
def test_an_invalid_value_is_rejected_under_the_name_of_its_option(
    name: str, value: str, says: str
) -> None:
    said = rejection(**{name.replace(".", "__"): value})

    assert said.startswith(f"option {name}: ")
    assert says in said
    assert "spec." not in said


def test_offsets_of_topics_that_match_the_pattern_are_accepted() -> None:
    pattern = {"kafka.bootstrap.servers": "b:1", "subscribePattern": "o.*"}

    parse_options({**pattern, "startingOffsets": '{"orders":{"0":1}}'})
    with pytest.raises(
        InvalidSpecError, match="option startingOffsets: partition 0 of topic 'users'"
    ):
        parse_options({**pattern, "startingOffsets": '{"users":{"0":1}}'})


def test_names_of_java_s_properties_are_translated() -> None:
    parsed = parse_options(
        {**TOPIC, "kafka.fetch.max.wait.ms": "10", "kafka.request.timeout.ms": "7000"}
    )

    assert parsed.embedded is not None
    assert parsed.embedded.clusters[0].properties == {
        "fetch.wait.max.ms": "10",
        "socket.timeout.ms": "7000",
    }


def test_options_of_a_journal_are_known_only_where_sources_have_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Kafka's ends are known when a micro-batch is planned."""
    tapes = Connectors([Registration(kind="tapes", reference="tapes:Connector", package="tapes")])
    assert "unknown option 'journallocation'" in rejection(journallocation="/a").lower()
    monkeypatch.setattr(options, "installed", lambda: tapes)
    half: Any = TapeHalf(Shelf(lengths={}))
    half.options = lambda: ()

    assert not _checked({"connector": "tapes", "journallocation": "/a"}, half)
