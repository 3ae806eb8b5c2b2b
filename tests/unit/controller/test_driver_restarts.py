"""Drivers that had to be started again are counted, and those that a change started are not."""

from typing import Any

import pytest

from balanced_source_operator.controller.driver_restarts import DriverRestarts
from balanced_source_operator.resources.kinds import FAILURES_ANNOTATION
from support.builders import driver_pod, spark_application


def look(restarts: DriverRestarts, application: dict[str, Any], *pods: str) -> int:
    """Restarts of host 0, whose driver pods have these uids."""
    found = restarts.look({"0": [application]}, [driver_pod(uid=uid) for uid in pods])
    assert found.keys() == {"0"}
    return found["0"]


def replacing(failures: int) -> dict[str, Any]:
    """The application that is made after so many failures in a row."""
    made = spark_application(uid="second")
    made["metadata"]["annotations"][FAILURES_ANNOTATION] = str(failures)
    return made


def test_each_further_driver_of_an_application_is_a_restart() -> None:
    restarts, application = DriverRestarts(), spark_application()

    assert look(restarts, application) == 0
    assert look(restarts, application, "a") == 0, "the first one is asked for"
    assert look(restarts, application, "a") == 0
    assert look(restarts, application) == 0, "nothing has been started yet"
    assert look(restarts, application, "b") == 1
    assert look(restarts, application, "b", "c", "d") == 2
    assert look(restarts, application, "a", "d") == 0, "a watch may be late"


def test_what_ran_before_the_first_look_is_no_restart() -> None:
    restarts, application = DriverRestarts(), spark_application()

    assert look(restarts, application, "a") == 0
    assert look(restarts, application, "a", "b") == 1


@pytest.mark.parametrize(
    ("state", "counted"), [("FAILING", 1), ("PENDING_RERUN", 1), ("SUBMITTED", 0)]
)
def test_an_operator_that_starts_between_two_drivers_counts_the_second(
    state: str, counted: int
) -> None:
    restarts = DriverRestarts()

    assert look(restarts, spark_application(state=state)) == 0
    assert look(restarts, spark_application(), "b") == counted


@pytest.mark.parametrize(("failures", "counted"), [(0, 0), (1, 1), (7, 1)])
def test_a_new_application_is_a_restart_if_the_one_before_it_has_failed(
    failures: int, counted: int
) -> None:
    restarts = DriverRestarts()
    look(restarts, spark_application(), "a")

    assert restarts.look({}, []) == {}
    assert look(restarts, replacing(failures)) == 0
    assert look(restarts, replacing(failures), "b") == counted
    assert look(restarts, replacing(failures), "c") == 1


def test_the_pod_of_an_application_of_that_name_that_is_gone_is_not_the_first_one() -> None:
    restarts = DriverRestarts()
    look(restarts, spark_application(), "a")

    assert look(restarts, replacing(0), "a") == 0
    assert look(restarts, replacing(0), "a", "b") == 0, "only now has it started one"
    assert look(restarts, replacing(0), "b", "c") == 1


def test_hosts_are_counted_each() -> None:
    restarts = DriverRestarts()
    hosts = {name: [spark_application(f"orders-{name}")] for name in ("0", "1")}
    pods = [driver_pod("orders-0", uid="a"), driver_pod("orders-1", uid="b")]
    executor = driver_pod("orders-0", uid="x")
    executor["metadata"]["labels"]["spark-role"] = "executor"
    restarts.look(hosts, pods)

    found = restarts.look(hosts, [*pods, executor, driver_pod("orders-1", uid="c")])

    assert found == {"0": 0, "1": 1}
