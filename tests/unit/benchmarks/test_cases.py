"""Which readers a case is measured with."""

import pytest
from benchmarks.reading.cases import CASES, with_only


def test_a_case_is_for_all_its_readers_or_for_those_that_are_named() -> None:
    case = CASES["drip-16"]
    assert with_only(case, []) == case
    found = with_only(case, ["spark, tuned", "ours"])
    assert [who.name for who in found.contestants] == ["ours", "spark, tuned"]
    assert found.partitions == case.partitions


def test_a_name_that_takes_no_part_is_refused() -> None:
    with pytest.raises(ValueError, match=r"unknown here: \['kafka'\]; there are \['ours', "):
        with_only(CASES["drip-16"], ["ours", "kafka"])
