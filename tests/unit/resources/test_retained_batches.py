"""How many micro-batches Spark retains reaches every program that the operator starts."""

from typing import Any

import pytest

from balanced_source.documents import environment as document
from balanced_source.documents.environment import DriverEnvironment, from_variables, to_variables
from balanced_source.errors import CorruptDocumentError
from balanced_source_operator.resources.apache_application import apache_application
from balanced_source_operator.resources.spark_application import spark_application
from balanced_source_spark.journal_options import journal_options
from support.builders import identity, make_spec, spec_json

SETTING = "spark.sql.streaming.minBatchesToRetain"
OWN_PROGRAM = {"mainApplicationFile": "local:///opt/app/main.py", "pipeline": None}


def told(
    build: Any = spark_application,
    *,
    spark: dict[str, str] | None = None,
    chart: dict[str, str] | None = None,
    **application: Any,
) -> str | None:
    """Return the variable of the driver's pod."""
    wanted = {**spec_json()["application"], "sparkConf": spark or {}, **application}
    spec = make_spec(application={k: v for k, v in wanted.items() if v is not None})
    made = build(
        identity(),
        spec.application,
        name="orders-1",
        parallelism=1,
        secrets=(),
        conf=chart or {},
    )["spec"]
    pod = made["driver"]["template"] if "driver" in made else made["driverSpec"]["podTemplateSpec"]
    (container,) = pod["spec"]["containers"]
    values = {variable["name"]: variable.get("value") for variable in container["env"]}
    return values.get(document.RETAINED)


@pytest.mark.parametrize("build", [spark_application, apache_application])
@pytest.mark.parametrize("application", [{}, OWN_PROGRAM])
def test_any_program_is_told_what_spark_retains(build: Any, application: dict[str, Any]) -> None:
    assert told(build, spark={SETTING: "500"}, **application) == "500"
    assert told(build, chart={SETTING: "300"}, **application) == "300"
    assert told(build, chart={SETTING: "300"}, spark={SETTING: "500"}, **application) == "500"


@pytest.mark.parametrize("value", [None, "many", "0", "-5"])
def test_spark_itself_refuses_other_values(value: str | None) -> None:
    assert told(spark={} if value is None else {SETTING: value}) is None


def test_the_written_number_is_the_one_that_the_driver_reads() -> None:
    environment = DriverEnvironment(name="orders", namespace="n", uid="u", retained_batches=500)

    assert from_variables(to_variables(environment)) == environment
    silent = DriverEnvironment(name="orders", namespace="n", uid="u")
    assert document.RETAINED not in to_variables(silent)


@pytest.mark.parametrize("text", ["x", "-1", "8_090", "٣"])
def test_an_invalid_number_is_an_error_that_names_the_variable(text: str) -> None:
    with pytest.raises(CorruptDocumentError, match=document.RETAINED):
        document.retained_of({document.RETAINED: text})


@pytest.mark.parametrize(
    ("variable", "option", "kept"),
    [("500", None, 500), ("500", "700", 700), ("20", None, 20), ("", None, 100), ("", "7", 7)],
)
def test_a_journal_keeps_as_many_unless_the_option_says_otherwise(
    monkeypatch: pytest.MonkeyPatch, variable: str, option: str | None, kept: int
) -> None:
    monkeypatch.setenv(document.RETAINED, variable)
    given = {} if option is None else {"journalminbatches": option}

    assert journal_options({"journallocation": "/j", **given}).min_batches == kept
