"""What the packaged application leaves for the operator when it ends."""

from pathlib import Path

import pytest

from balanced_source.documents.environment import DriverEnvironment
from balanced_source.documents.pipeline import Sink
from balanced_source.errors import InvalidSpecError
from balanced_source.sinks import FORMATS, absent_format, query_error
from balanced_source_adapters.suggestions import nearest
from balanced_source_spark.last_words import leave
from balanced_source_spark.mounted_options import check_sink

ENVIRONMENT = DriverEnvironment(name="orders", namespace="shop", uid="u")


@pytest.mark.parametrize(
    ("sink", "option"),
    [
        (Sink(), "path"),
        (Sink(format="JSON", options={"compression": "gzip"}), "path"),
        (Sink(format="kafka", options={"topic": "copy"}), "kafka.bootstrap.servers"),
    ],
)
def test_a_sink_without_its_option_is_named(sink: Sink, option: str) -> None:
    with pytest.raises(InvalidSpecError) as error:
        check_sink(sink, ENVIRONMENT)

    assert str(error.value).startswith(
        f"spec.application.pipeline.sink.options: the option {option} is missing, which the sink"
        f" format {sink.format} needs. Set it to "
    )


@pytest.mark.parametrize(
    "sink",
    [
        Sink(options={"PATH": "/data"}),
        Sink(format="Kafka", options={"kafka.bootstrap.servers": "b:9092"}),
        Sink(format="console"),
        Sink(format="com.example.Sink"),
    ],
)
def test_other_sinks_pass(sink: Sink) -> None:
    check_sink(sink, ENVIRONMENT)


def test_the_option_may_be_in_a_secret(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "path").write_text("/data")
    environment = DriverEnvironment(
        name="orders", namespace="shop", uid="u", secrets_dir=str(tmp_path)
    )

    check_sink(Sink(secrets=("target",)), environment)


def test_the_first_line_is_left_without_secrets(tmp_path: Path) -> None:
    log = tmp_path / "termination-log"
    log.touch()

    leave("a query failed: token=abc123\nTraceback", log)

    assert log.read_text() == "a query failed: token=[redacted]"


def test_nothing_is_written_outside_of_a_pod(tmp_path: Path) -> None:
    leave("a reason", tmp_path / "termination-log")

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "text",
    [
        "SparkClassNotFoundException: [DATA_SOURCE_NOT_FOUND] Failed to find the data source: d.",
        "Failed to find data source: kafka. Please deploy the application as per the deployment",
    ],
)
def test_an_image_without_the_jars_of_the_sink_is_named(text: str) -> None:
    error = absent_format("delta", text)

    assert str(error).startswith(
        "spec.application.pipeline.sink.format: Spark has no sink format 'delta' here."
    )
    assert absent_format("delta", "Permission denied") is None


def test_a_misspelt_sink_format_is_corrected_and_a_laptop_is_told_where_jars_go() -> None:
    similar = nearest("parket", FORMATS)
    error = absent_format("parket", "[DATA_SOURCE_NOT_FOUND] no such thing", similar=similar)

    assert "no sink format 'parket' here; did you mean parquet? " in str(error)
    assert "set spark.jars.packages or spark.jars in spec.application.sparkConf" in str(error)


def test_a_folder_that_does_not_belong_to_the_checkpoint_is_named() -> None:
    text = (
        "[BATCH_METADATA_NOT_FOUND] Unable to find batch file:/tmp/new/_spark_metadata/69.compact."
        " SQLSTATE: 42K03"
    )

    message = query_error(Exception(text))

    assert message.startswith("spec.application.pipeline.sink.options.path: the folder of the sink")
    assert "Set path back, or start over with another checkpointLocation" in message
    other = "[BATCH_METADATA_NOT_FOUND] Unable to find batch 7"
    assert query_error(Exception(other)) == other
