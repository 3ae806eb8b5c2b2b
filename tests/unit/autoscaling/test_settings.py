"""Between the custom resource and the autoscaler."""

from dataclasses import replace
from typing import Any

import pytest

from balanced_source.reasons import Reason
from balanced_source_operator.controller.autoscaling import Verdict, words
from balanced_source_operator.controller.autoscaling.settings import (
    UNKNOWN_TRIGGER,
    autoscaling_status,
    policy_of,
    stored_capacity,
)
from support.builders import make_spec, spec_json
from support.loads import LOAD


@pytest.mark.parametrize(
    ("trigger", "counts"),
    [
        ({"trigger": {"processingTime": "10s"}}, 10.0),
        ({"trigger": {"processingTime": "0s"}}, 0.0),
        (None, UNKNOWN_TRIGGER),
    ],
)
def test_the_trigger_is_that_of_the_query_unless_the_program_is_the_users(
    trigger: dict[str, Any] | None, counts: float
) -> None:
    packaged = spec_json()["application"]["pipeline"]
    pipeline = None if trigger is None else {**packaged, **trigger}
    own = {"mainApplicationFile": "local:///app/own.py"} if trigger is None else {}
    application = {**spec_json()["application"], "pipeline": pipeline, **own}
    asked = {"minReaders": 1, "maxReaders": 4}

    policy = policy_of(make_spec(application=application, autoscaling=asked))

    assert policy is not None
    assert policy.trigger == counts


@pytest.mark.parametrize(
    ("rate", "shown"),
    [(0.0, 0), (0.5, None), (0.99, None), (1.0, 1), (1.9, 2), (19.6, 20), (1234.0, 1200)],
)
def test_rates_are_rounded_and_slow_ones_are_not_shown_as_none_at_all(
    rate: float, shown: int | None
) -> None:
    verdict = Verdict(
        readers=1, reason=Reason.WITHIN_TARGET, message="", arrival=rate, capacity=rate
    )

    status = autoscaling_status(verdict)

    assert status is not None
    assert (status.arrival_rate, status.capacity_per_reader) == (shown, shown)


@pytest.mark.parametrize(("share", "percent"), [(0.0, 0), (0.019, 2), (0.756, 76), (1.26, 130)])
def test_the_utilization_is_rounded(share: float, percent: int) -> None:
    status = autoscaling_status(
        Verdict(readers=1, reason=Reason.WITHIN_TARGET, message="", utilization=share)
    )

    assert status is not None
    assert status.utilization == percent


@pytest.mark.parametrize(
    ("rate", "words_of_it"), [(0.0, "0 "), (0.5, "0.5 "), (1.93, "1.9 "), (12.4, "12 ")]
)
def test_slow_rates_have_two_significant_digits_in_sentences(rate: float, words_of_it: str) -> None:
    load = replace(LOAD, arrival=rate, demand=rate, splits=4, hottest=0.25)

    assert words.within(load, 3.14, 1) == (
        f"{words_of_it}records/s arrive, and one reader processes 3.1: 1 reader suffices"
    )


@pytest.mark.parametrize(
    ("body", "capacity"),
    [
        ({}, None),
        ({"status": None}, None),
        ({"status": {"autoscaling": None}}, None),
        ({"status": {"autoscaling": {"desiredReaders": 4}}}, None),
        ({"status": {"autoscaling": {"capacityPerReader": 0}}}, None),
        ({"status": {"autoscaling": {"capacityPerReader": "7"}}}, None),
        ({"status": {"autoscaling": {"capacityPerReader": 700}}}, 700.0),
    ],
)
def test_the_capacity_of_a_former_operator_is_read_from_the_status(
    body: dict[str, Any], capacity: float | None
) -> None:
    assert stored_capacity(body) == capacity
