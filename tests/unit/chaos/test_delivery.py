"""What the checker of `make chaos` calls lost, duplicated, unexpected, disordered or excused."""

import json
from pathlib import Path

import pytest

from chaos.checker.broker_log import Record
from chaos.checker.delivery import Bound, Evidence, Verdict, judge
from chaos.checker.notices import Notice
from chaos.checker.sink import Attempt, Row

pytestmark = pytest.mark.unit


def record(offset: int, *, topic_id: str = "first", digest: str | None = None) -> Record:
    return Record("main", "orders", topic_id, 0, offset, digest or f"{topic_id}-{offset}")


def row(offset: int, *, topic_id: str = "first") -> Row:
    return Row("main", "orders", 0, offset, f"{topic_id}-{offset}")


def attempt(batch: int, *offsets: int, is_valid: bool = True) -> Attempt:
    return Attempt(batch, is_valid, (tuple(map(row, offsets)),))


def verdict(
    log: range,
    *found: Attempt,
    gone: range = range(0),
    told: tuple[Notice, ...] = (),
    bound: Bound | None = None,
) -> Verdict:
    ever = frozenset(map(record, log))
    final = frozenset(r for r in ever if r.offset not in gone)
    bounds = {("main", "orders", 0): bound} if bound is not None else {}
    return judge(Evidence(ever, final, bounds, found, told))


def test_every_record_once_is_right() -> None:
    found = verdict(range(4), attempt(0, 0, 1), attempt(1, 2, 3))

    assert found.is_ok
    assert found.records == 4


def test_a_record_in_no_valid_attempt_is_lost() -> None:
    found = verdict(range(4), attempt(0, 0, 1), attempt(1, 2, 3, is_valid=False))

    assert (found.lost, found.records) == (2, 2)
    assert "('main', 'orders', 'first', 0, 2, 'first-2')" in found.examples[0]


def test_a_record_in_two_micro_batches_is_duplicated() -> None:
    assert verdict(range(3), attempt(0, 0, 1), attempt(1, 1, 2)).duplicated == 1


def test_a_record_that_no_log_has_held_is_unexpected() -> None:
    """Such as one of an aborted transaction, or of another topic of the same name."""
    assert verdict(range(2), attempt(0, 0, 1, 2)).unexpected == 1


def test_records_before_the_start_and_after_the_stop_are_unexpected() -> None:
    bound = Bound("first", 2, 4)

    assert verdict(range(6), attempt(0, 2, 3), bound=bound).is_ok
    assert verdict(range(6), attempt(0, 1, 2, 3, 4), bound=bound).unexpected == 2


def test_bounds_hold_for_the_first_topic_of_the_name_only() -> None:
    ever = frozenset(record(offset, topic_id="second") for offset in range(2))
    rows = Attempt(
        0, is_valid=True, tasks=((row(0, topic_id="second"), row(1, topic_id="second")),)
    )
    evidence = Evidence(ever, ever, {("main", "orders", 0): Bound("first", 5, None)}, (rows,), ())

    assert judge(evidence).is_ok


def test_a_smaller_offset_after_a_larger_one_is_out_of_order() -> None:
    assert verdict(range(3), attempt(0, 0, 2, 1)).disordered == 1


def test_a_replay_must_deliver_the_same() -> None:
    """A sink may keep the first attempt instead of the last one."""
    found = verdict(range(4), attempt(0, 0, 1), attempt(1, 2, is_valid=False), attempt(1, 2, 3))

    assert found.replayed == 1
    assert not found.lost


def test_micro_batches_of_different_hosts_with_one_number_are_no_replay() -> None:
    assert verdict(range(4), attempt(0, 0, 1), attempt(0, 2, 3)._replace(host=1)).is_ok


def test_a_record_delivered_by_two_hosts_is_a_duplicate() -> None:
    assert verdict(range(3), attempt(0, 0, 1), attempt(0, 1, 2)._replace(host=1)).duplicated == 1


def test_a_record_that_is_gone_is_excused_only_by_a_notice_that_names_its_offset() -> None:
    notice = Notice("orders", 0, 0, 2)

    assert verdict(range(4), attempt(0, 2, 3), gone=range(2), told=(notice,)).excused == 2
    assert verdict(range(4), attempt(0, 2, 3), gone=range(2)).lost == 2
    assert verdict(range(4), attempt(0, 3), gone=range(3), told=(notice,)).lost == 1


def test_a_record_that_is_still_in_the_log_is_never_excused() -> None:
    assert verdict(range(4), attempt(0, 2, 3), told=(Notice("orders", 0, 0, 2),)).lost == 2


def test_a_delivered_record_may_be_gone() -> None:
    assert verdict(range(4), attempt(0, 0, 1, 2, 3), gone=range(2)).is_ok


def test_only_what_an_unclean_election_took_before_it_was_delivered_needs_no_name(
    tmp_path: Path,
) -> None:
    """Three records of six are cut.

    The first one was delivered, as far as the query has committed.
    """
    (tmp_path / "dumps").mkdir()
    (tmp_path / "bounds.json").write_text("{}")
    (tmp_path / "logs").mkdir()
    (tmp_path / "sink").mkdir()
    after = [record(offset) for offset in range(3)] + [
        record(offset, digest=f"new-{offset}") for offset in range(3, 5)
    ]
    for name, records in (("001", [record(o) for o in range(6)]), ("002", after), ("final", after)):
        lines = [",".join(map(str, one)) for one in records]
        (tmp_path / "dumps" / f"{name}.csv").write_text("".join(line + "\n" for line in lines))
    line = {
        "before": "001.csv",
        "after": "002.csv",
        "committed": [["main", "orders", 0, "first", 4]],
    }
    (tmp_path / "cuts.jsonl").write_text(json.dumps(line) + "\n")

    evidence = Evidence.read(tmp_path)
    found = judge(evidence)

    assert evidence.cut == {record(4), record(5)}
    assert (found.excused, found.lost) == (2, 6)
