"""Ratios of `make bench-before` that cannot be formed."""

import pytest
from benchmarks import bench_before


@pytest.mark.parametrize(
    ("before", "now", "expected"), [(3.0, 2.0, 1.5), (3.0, 0.0, None), (0.0, 2.0, None)]
)
def test_a_side_that_measured_nothing_has_no_ratio(
    before: float, now: float, expected: float | None
) -> None:
    measured = {"before": {"cpu": before}, "now": {"cpu": now}}
    assert bench_before._ratio(measured, "cpu") == expected


@pytest.mark.parametrize(
    ("ratios", "expected"),
    [
        ([1.0, 2.0, 3.0], "CPU: 2.000 (1.00 to 3.00)\n"),
        ([None, 2.0], "CPU: 2.000 (2.00 to 2.00), 1 of 2 rounds without a ratio\n"),
        ([None], "CPU: –, 1 of 1 rounds without a ratio\n"),
    ],
)
def test_rounds_without_a_ratio_are_counted(
    ratios: list[float | None], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    bench_before._show("CPU", ratios)
    assert capsys.readouterr().err == expected
