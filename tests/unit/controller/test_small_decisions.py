"""Small decisions of the controller: which pods are drivers, and which problems come first."""

from typing import Any

import pytest

from balanced_source.errors import RefusedDiscoveryError, TransientDiscoveryError
from balanced_source_operator.controller.diagnosis import is_driver
from balanced_source_operator.controller.problems import discovery_problems
from balanced_source_operator.runtime.observed import Observed


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"labels": {"spark-role": "driver"}}, True),
        ({"labels": {"spark-role": "executor"}}, False),
        ({"labels": {}}, False),
        ({"labels": None}, False),
        ({}, False),
    ],
)
def test_a_driver_is_known_by_its_label(metadata: dict[str, Any], *, expected: bool) -> None:
    assert is_driver({"metadata": metadata}) is expected


def test_problems_of_scopes_are_in_their_order_and_refusals_are_fatal() -> None:
    errors: dict[str, Exception] = {
        "z": RefusedDiscoveryError("refused", scope="z"),
        "a": TransientDiscoveryError("silent", scope="a"),
    }

    found = discovery_problems(errors)

    assert [(problem.scope, problem.is_fatal) for problem in found] == [("a", False), ("z", True)]


@pytest.mark.parametrize(
    ("metadata", "generation"), [({"generation": 7}, 7), ({"generation": 1}, 1), ({}, 0)]
)
def test_a_spec_without_a_generation_is_older_than_any_other(
    metadata: dict[str, Any], generation: int
) -> None:
    assert Observed({"metadata": metadata}).generation == generation
