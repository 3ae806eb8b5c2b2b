"""`spec.autoscaling` beside other settings."""

import pytest

from balanced_source.errors import InvalidSpecError
from balanced_source_operator.spec import BalancedSourceSpec
from support.builders import make_spec

MANUAL = {"rebalance": {"mode": "Manual"}}


def test_added_readers_that_would_get_no_splits_are_refused() -> None:
    with pytest.raises(InvalidSpecError, match="gives added readers no splits: use OnRescale or"):
        make_spec(autoscaling={"maxReaders": 4}, assignment=MANUAL)


def test_either_of_them_alone_is_fine() -> None:
    make_spec(assignment=MANUAL)
    make_spec(autoscaling={"maxReaders": 4}, assignment={"rebalance": {"mode": "Drift"}})


def test_the_api_server_refuses_it_too() -> None:
    rules = BalancedSourceSpec.model_json_schema()["x-kubernetes-validations"]

    assert "!has(self.autoscaling) || self.assignment.rebalance.mode != 'Manual'" in [
        each["rule"] for each in rules
    ]
