"""Which sentences excuse which records."""

from pathlib import Path

import pytest

from chaos.checker.notices import notices

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("line", "first", "end"),
    [
        (
            (
                "cluster main: topic orders was deleted: partition 1 from offset 120 to 169. Set"
                " onDataLoss"
            ),
            120,
            170,
        ),
        (
            (
                "topic orders was deleted. Unread records of the old topic are gone: partition 1"
                " from offset 7 to 9"
            ),
            7,
            10,
        ),
        (
            "topic orders: partition 0 from offset 1 to 2; partition 1 from offset 7 on",
            7,
            2**63 - 1,
        ),
    ],
)
def test_a_line_with_a_partition_and_a_range_is_a_notice(
    tmp_path: Path, line: str, first: int, end: int
) -> None:
    (tmp_path / "driver.log").write_text(f"something else\n{line}\n")

    (found,) = notices(tmp_path, [("orders", 1)])

    assert (found.first, found.end) == (first, end)


@pytest.mark.parametrize(
    "line",
    [
        "topic orders: partition 11 from offset 120 to 170 is gone",
        "topic my-orders: partition 1 from offset 120 to 170 is gone",
        "topic orders-2: partition 1 from offset 120 to 170 is gone",
        "topic orders was deleted. topic other was deleted: partition 1 from offset 120 to 170",
        (
            "skipped: topic orders partition 0 from offset 1 to 2; topic other partition 1 from"
            " offset 120 to 170"
        ),
        "topic orders: 50 offsets of partition 1 are gone",
        "partition 1 from offset 120 to 170 is gone",
    ],
)
def test_other_partitions_and_mere_numbers_excuse_nothing(tmp_path: Path, line: str) -> None:
    (tmp_path / "driver.log").write_text(line)

    assert not notices(tmp_path, [("orders", 1)])


def test_a_line_may_name_several_topics_and_an_id_is_binding(tmp_path: Path) -> None:
    """What is said of one topic excuses nothing of the next, nor of a later namesake."""
    (tmp_path / "operator.log").write_text(
        "topic orders (id abc) was deleted: partition 0 from offset 5 on. topic other was deleted:"
        " partition 1 from offset 7 to 9"
    )

    assert not notices(tmp_path, [("orders", 1)])
    (found,) = notices(tmp_path, [("orders", 0)])
    assert found.excuses("orders", "abc", 0, 5)
    assert not found.excuses("orders", "def", 0, 5)
