"""The spec of a drain attempt, by that of the lost application."""

import copy

import pytest

from balanced_source_operator.resources.providers import SPARK_OPERATORS
from balanced_source_operator.spec.application import Provider

pytestmark = pytest.mark.unit


def test_kubeflows_gets_one_executor_and_no_limit_of_failures() -> None:
    lost = {
        "image": "shop/orders:1",
        "executor": {"cores": 2, "instances": 5},
        "restartPolicy": {"type": "OnFailure", "onFailureRetries": 0},
    }
    before = copy.deepcopy(lost)

    found = SPARK_OPERATORS[Provider.KUBEFLOW].drained(lost)

    assert found["executor"] == {"cores": 2, "instances": 1}
    assert (found["restartPolicy"]["type"], found["restartPolicy"]["onFailureRetries"]) == (
        "OnFailure",
        5,
    )
    assert found["image"] == "shop/orders:1"
    assert lost == before


def test_apaches_gets_one_executor_and_is_started_again_by_this_operator() -> None:
    lost = {
        "sparkConf": {"spark.executor.instances": "5", "spark.x": "y"},
        "applicationTolerations": {"restartConfig": {"restartPolicy": "OnFailure"}},
    }
    before = copy.deepcopy(lost)

    found = SPARK_OPERATORS[Provider.APACHE].drained(lost)

    assert found["sparkConf"] == {"spark.executor.instances": "1", "spark.x": "y"}
    assert found["applicationTolerations"]["restartConfig"] == {"restartPolicy": "Never"}
    assert found["applicationTolerations"]["resourceRetainPolicy"] == "OnFailure"
    assert lost == before
