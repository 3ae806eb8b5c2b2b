"""Spark finds the source by itself; where it cannot be used, a sentence says why."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark import cloudpickle
from pyspark.errors import AnalysisException
from pyspark.sql.datasource import DataSource

from balanced_source_spark.data_source import BalancedDataSource, _explaining, register
from balanced_source_spark.spark_version import check_spark_version
from balanced_source_spark.unusable import unusable


def test_the_package_that_spark_looks_for_has_the_source() -> None:
    import pyspark_balanced

    assert pyspark_balanced.DefaultSource is BalancedDataSource
    assert issubclass(pyspark_balanced.DefaultSource, DataSource)


@pytest.mark.parametrize("version", ["3.5.1", "4.0.0", "4.1.0.dev1"])
def test_a_release_of_spark_that_is_too_old_is_named(version: str) -> None:
    with pytest.raises(
        ImportError,
        match=rf"^PySpark {version} is too old for Balanced Source: install PySpark 4\.2",
    ):
        check_spark_version(version)


@pytest.mark.parametrize("version", ["4.2.0", "4.3.0", "4.10.0", "5.0.0.dev0", "unknown"])
def test_newer_releases_are_taken(version: str) -> None:
    check_spark_version(version)


def test_a_source_that_cannot_be_used_says_why_when_it_is_used() -> None:
    made = unusable("PySpark 4.1 is too old")

    assert made.name() == "balanced"
    with pytest.raises(ImportError, match=r"PySpark 4\.1 is too old"):
        made({}).schema()


def test_workers_without_the_package_say_which_python_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The class travels by value: it works where the package cannot be imported."""
    pickled = cloudpickle.dumps(_explaining("/notebook/python"))
    monkeypatch.setitem(sys.modules, "balanced_source_spark.data_source", None)
    monkeypatch.setitem(sys.modules, "balanced_source_spark", None)
    monkeypatch.setenv("SPARK_HIDE_TRACEBACK", "")

    source = cloudpickle.loads(pickled)({})

    with pytest.raises(ModuleNotFoundError) as raised:
        source.schema()
    assert (
        f"the Python of Spark's workers, {sys.executable}, has no module balanced_source_spark"
        in str(raised.value)
    )
    assert "PYSPARK_PYTHON (or spark.pyspark.python) to /notebook/python" in str(raised.value)


class Refusing(AnalysisException):
    def __init__(self, condition: str) -> None:
        super().__init__(condition)
        self._condition = condition

    def getCondition(self) -> str:  # noqa: N802 - of PySpark
        return self._condition


def session(condition: str) -> Any:
    def refuse(_: type[DataSource]) -> None:
        raise Refusing(condition)

    return SimpleNamespace(dataSource=SimpleNamespace(register=refuse))


def test_registering_a_source_that_spark_has_found_changes_nothing() -> None:
    register(session("DATA_SOURCE_ALREADY_EXISTS"))


def test_other_refusals_are_not_hidden() -> None:
    with pytest.raises(Refusing):
        register(session("SOMETHING_ELSE"))
