"""Ctrl-C and SIGTERM end a run in order, with one line that says where it has stopped."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from balanced_source.errors import InvalidSpecError
from balanced_source_operator.laptop import driver as driver_module
from balanced_source_operator.laptop.driver import LaptopDriver
from balanced_source_operator.laptop.run import Ending, _followed, local_environment
from support.builders import make_spec
from testbed.versions import CHECKOUT


class NoOperator:
    """Serves nothing."""

    def look(self) -> None:
        """See nothing."""


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Ending]:
    """Follows the stand-in for Spark, and interrupts it as soon as it has started."""
    monkeypatch.setattr(driver_module, "MODULE", "support.laptop_program")

    def interrupted(**variables: str) -> Ending:
        for name, value in variables.items():
            monkeypatch.setenv(f"LAPTOP_PROGRAM_{name}", value)
        environment = local_environment("orders", make_spec(), tmp_path / "orders.yaml")
        path = (CHECKOUT / "tests",)
        found = LaptopDriver(environment, folder=tmp_path, slots=1, conf={}, python_path=path)

        def interrupt() -> None:
            if found.progress.is_started and found.exit_code is None:
                raise KeyboardInterrupt

        operator: Any = NoOperator()
        return _followed(operator, found, interrupt)

    return interrupted


def test_an_interrupted_query_ends_after_its_micro_batch(run: Callable[..., Ending]) -> None:
    assert run() == Ending(0, "stopped after batch 1 (10 rows in this run)")


def test_spark_that_still_starts_is_ended_without_an_error(run: Callable[..., Ending]) -> None:
    assert run(IS_STARTING="1") == Ending(0, "stopped before the first micro-batch")


def test_a_query_that_fails_while_it_stops_is_an_error(run: Callable[..., Ending]) -> None:
    with pytest.raises(InvalidSpecError, match="the query failed"):
        run(CODE="1")


def test_the_reason_of_a_failure_stands_alone_behind_the_path_of_the_log(
    run: Callable[..., Ending], tmp_path: Path
) -> None:
    with pytest.raises(InvalidSpecError) as caught:
        run(CODE="1", REASON="there is no sink format parket. Correct the name")

    assert str(caught.value).splitlines() == [
        f"{tmp_path}/driver.log: the query failed. The file has the whole log; the reason is:",
        "there is no sink format parket. Correct the name",
    ]
    assert "sun.nio.ch" in (tmp_path / "driver.log").read_text()


def test_a_query_that_does_not_say_why_it_has_failed_leaves_the_last_exception(
    run: Callable[..., Ending],
) -> None:
    with pytest.raises(InvalidSpecError) as caught:
        run(CODE="7")

    assert str(caught.value).splitlines()[-1] == (
        "Spark ended with exit code 7, and did not say why. The last exception in its log:"
        " py4j.protocol.Py4JNetworkError: Answer from Java side is empty"
    )


def test_a_query_that_does_not_end_is_killed(
    run: Callable[..., Ending], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver_module, "STOP_PATIENCE", 0.5)
    ending = run(IS_DEAF="1")

    assert ending.code == 1
    assert ending.sentence.startswith("killed before the first micro-batch: ")


def test_the_interrupt_of_the_terminal_does_not_reach_the_query(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(driver_module, "MODULE", "support.laptop_program")
    environment = local_environment("orders", make_spec(), tmp_path / "orders.yaml")
    path = (CHECKOUT / "tests",)
    found = LaptopDriver(environment, folder=tmp_path, slots=1, conf={}, python_path=path)

    assert os.getsid(found.pid) == found.pid != os.getsid(0)
    found.stop()
