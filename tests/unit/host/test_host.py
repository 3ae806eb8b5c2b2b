"""The pure part of a reader host: adopting, planning, reporting, being fenced."""

from dataclasses import replace

import pytest

from balanced_source.api import IDENTITY, SourceEvent
from balanced_source.documents import stream_offset
from balanced_source.documents.assignment import Assignment, NumberedEvent
from balanced_source.documents.stream_offset import StreamOffset, TermEnd
from balanced_source.errors import (
    ContractViolationError,
    CorruptDocumentError,
    IncompatibleVersionError,
)
from balanced_source.host import Phase, ReaderHost, adopt, plan
from balanced_source.host.adoption import readers_on
from balanced_source.host.micro_batch import advance

A, B, C = ("k", "t", 0), ("k", "t", 1), ("k", "u", 0)


def assignment(epoch: int = 2, *, incarnation: int = 1, **changes: object) -> Assignment:
    values = {"epoch": epoch, "parallelism": 2, "incarnations": {"0": incarnation}, **changes}
    return Assignment(**values)  # type: ignore[arg-type]


def registered(offset: StreamOffset | None = None, incarnation: int = 1) -> ReaderHost:
    return ReaderHost(incarnation=incarnation).on_committed(offset or StreamOffset())


def test_nothing_is_read_before_an_assignment_for_this_incarnation() -> None:
    old = registered(
        StreamOffset(epoch=7, positions={A: 5}, owners={A: 0}, readers=(0,)), incarnation=3
    )

    _, base = old.on_assignment(assignment(8, incarnation=2, owners={A: 0})).base()

    assert base is None


def test_an_idle_query_that_commits_the_same_offset_again_changes_nothing() -> None:
    held = StreamOffset(epoch=1, parallelism=1, readers=(0,), owners={A: 0}, positions={A: 50})
    host = registered(held).on_assignment(assignment(1, owners={A: 0}))
    end = replace(held, positions={A: 70})

    assert host.on_committed(held) is host
    assert host.on_planned(end).committed == {A: 50}
    assert host.on_planned(end).on_committed(end).committed == {A: 70}


def test_an_assignment_is_adopted_with_the_reader_s_own_positions() -> None:
    held = StreamOffset(epoch=1, parallelism=1, readers=(0,), owners={A: 0}, positions={A: 50})

    adopted = adopt(held, assignment(owners={A: 1, B: 0}, starts={A: 10, B: 3}), host="0")

    assert adopted.positions == {A: 50, B: 3}
    assert adopted.starts == {B: 3}
    assert (adopted.owners, adopted.parallelism, adopted.readers) == ({A: 1, B: 0}, 2, (0, 1))


def test_a_returning_split_continues_at_the_newer_of_two_positions() -> None:
    kept = StreamOffset(epoch=1, retained={A: 40, B: 40})

    starts = {A: 30, B: 60}
    back = assignment(
        owners={A: 0, B: 0}, starts=starts, since={A: 2, B: 2}, retained=frozenset({A, B})
    )
    adopted = adopt(kept, back, host="0")

    assert adopted.positions == {A: 40, B: 60}


def test_a_retained_position_does_not_apply_to_another_split_of_the_same_name() -> None:
    kept = StreamOffset(epoch=1, owners={B: 0}, positions={B: 40}, retained={A: 40})

    adopted = adopt(
        kept, assignment(owners={A: 0, B: 0}, starts={A: 0, B: 0}, since={A: 2, B: 2}), host="0"
    )

    assert adopted.positions == {A: 0, B: 0}


def test_an_adopted_assignment_stays_although_the_operator_does_not_know_it() -> None:
    held = StreamOffset(epoch=2, owners={A: 0}, positions={A: 40})

    adopted = adopt(held, assignment(3, owners={A: 0}, starts={A: 0}, since={A: 2}), host="0")

    assert adopted.positions == {A: 40}


def test_attributes_stay_with_the_splits_that_the_host_owns_or_retains() -> None:
    held = StreamOffset(
        epoch=1,
        owners={A: 0, B: 0, C: 0},
        positions={A: 1, B: 2, C: 3},
        attributes={A: {"topicId": "a"}, B: {"topicId": "b"}, C: {"topicId": "c"}},
    )

    following = assignment(
        owners={A: 0},
        starts={A: 0},
        attributes={A: {"topicId": "a"}},
        retained=frozenset({B}),
    )
    adopted = adopt(held, following, host="0")

    assert adopted.retained == {B: 2}
    assert adopted.attributes == {A: {"topicId": "a"}, B: {"topicId": "b"}}


def test_a_removed_split_is_kept_only_where_it_is_retained() -> None:
    held = StreamOffset(epoch=1, owners={A: 0, B: 0, C: 0}, positions={A: 1, B: 2, C: 3})

    adopted = adopt(held, assignment(owners={A: 0}, retained=frozenset({B})), host="0")

    assert (adopted.positions, adopted.retained) == ({A: 1}, {B: 2})


def test_a_split_without_any_position_is_refused_rather_than_guessed() -> None:
    with pytest.raises(ContractViolationError, match="without a position"):
        adopt(StreamOffset(), assignment(owners={A: 0}), host="0")


def test_each_of_two_hosts_takes_its_own_readers() -> None:
    doc = replace(
        assignment(owners={A: 0, B: 1, C: 2}, starts={A: 0, B: 0, C: 0}),
        incarnations={"x": 1, "y": 1},
    )
    doc = replace(doc, parallelism=3)

    assert adopt(StreamOffset(), doc, host="x").owners == {A: 0, C: 2}
    assert adopt(StreamOffset(), doc, host="y").readers == (1,)


def test_planning_depends_on_the_two_offsets_alone() -> None:
    start = StreamOffset(epoch=1, parallelism=1, readers=(0,), owners={A: 0}, positions={A: 5})
    end = StreamOffset(
        epoch=2,
        parallelism=3,
        readers=(0, 1, 2),
        owners={A: 2, B: 0},
        positions={A: 9, B: 4},
        starts={B: 1},
    )

    plans = plan(*(stream_offset.from_json(stream_offset.to_json(o)) for o in (start, end)))

    ranges = {p.subtask_id: [(r.split_id, r.start, r.end) for r in p.ranges] for p in plans}
    assert ranges == {0: [(B, 1, 4)], 1: [], 2: [(A, 5, 9)]}


def test_nothing_to_read_makes_no_task() -> None:
    end = StreamOffset(epoch=2, parallelism=2, readers=(0, 1), owners={A: 1}, positions={A: 5})

    assert plan(StreamOffset(positions={A: 5}), end) == ()


def test_a_range_without_a_start_is_an_error_not_a_guess() -> None:
    with pytest.raises(ContractViolationError, match="no start"):
        plan(StreamOffset(), StreamOffset(owners={A: 0}, positions={A: 5}))


def test_a_newer_incarnation_fences_this_one_for_good() -> None:
    host = registered().on_assignment(assignment(2, incarnation=2))

    assert host.phase is Phase.FENCED
    assert (
        host.on_assignment(assignment(3, incarnation=1, owners={A: 0}, starts={A: 0})).base()[1]
        is None
    )
    assert host.report(sequence=1) is None


def test_a_new_lineage_is_reported_before_anything_of_it_or_of_the_old_one_is_adopted() -> None:
    host = registered().on_assignment(assignment(2, owners={A: 0}, starts={A: 0}))
    host, base = host.base()
    assert base is not None
    host = host.on_planned(base)

    anew = host.on_assignment(assignment(9, incarnation=0, lineage=2))
    stale = anew.on_assignment(assignment(5, owners={}))

    report = anew.report(sequence=1)
    assert report is not None
    assert (report.lineage, report.positions) == (2, {A: 0})
    assert stale == anew
    assert anew.base()[1] == replace(base, starts={}), "it reads on meanwhile"


def test_one_of_several_hosts_ends_its_batch_in_a_new_lineage_then_reports_and_waits() -> None:
    """Its splits may go to others at the positions of that report, so it must be the last."""
    host = registered().on_assignment(assignment(2, owners={A: 0}, starts={A: 0}))
    host, base = host.base()
    assert base is not None
    end = replace(base, positions={A: 4})
    host = host.on_planned(end)

    several = replace(assignment(9, incarnation=0, lineage=2), incarnations={"0": 0, "1": 0})
    anew = host.on_assignment(several)

    assert anew.report(sequence=1) is None
    assert anew.base()[1] is None
    ended = anew.on_committed(end)
    report = ended.report(sequence=2)
    assert report is not None
    assert (report.lineage, report.positions) == (2, {A: 4})
    assert ended.base()[1] is None, "not before it is addressed"


def test_the_acknowledgement_is_the_epoch_in_the_offset_log() -> None:
    host = registered().on_assignment(assignment(2, owners={A: 0}, starts={A: 7}))
    host, base = host.base()
    assert base is not None
    end = replace(base, positions={A: 9})

    before = host.report(sequence=1)
    after = host.on_planned(end).report(sequence=2)
    delivered = host.on_planned(end).on_committed(end).report(sequence=3)

    assert before is not None
    assert after is not None
    assert delivered is not None
    assert (before.epoch, after.epoch) == (0, 2)
    assert (after.positions, delivered.positions) == ({A: 7}, {A: 9})


def test_offsets_of_newer_software_and_of_other_sources_are_refused() -> None:
    with pytest.raises(
        IncompatibleVersionError, match=rf"version 99.*up to {stream_offset.VERSION}"
    ):
        stream_offset.from_json({"version": 99})
    with pytest.raises(CorruptDocumentError):
        stream_offset.from_json({"orders": {"0": 5}})


UNDER_4 = StreamOffset(
    epoch=1,
    parallelism=1,
    readers=(0,),
    owners={A: 0, B: 0},
    positions={A: 9, B: 7},
    terms={A: 4, B: 4},
    attributes={A: {"id": "first"}, B: {"id": "first"}},
)
"""Two splits that were read under leadership 4."""


def test_the_leadership_of_a_position_is_kept_with_the_position() -> None:
    """Also when the state was recreated and gives the split out as a new one.

    It does not hold for another split of that name.
    """
    ends, same = (TermEnd(3, 5),), UNDER_4.attributes
    held = replace(UNDER_4, term_ends={A: ends, B: ends})
    anew = assignment(
        3, owners={A: 0, B: 0}, starts={A: 9, B: 3}, since={A: 3, B: 3}, attributes=same
    )
    stays = assignment(3, owners={A: 0}, starts={A: 0}, since={A: 1}, attributes=same)
    other = assignment(
        3, owners={A: 0}, starts={A: 9}, since={A: 3}, attributes={A: {"id": "second"}}
    )

    for found, terms in [(anew, {A: 4}), (stays, {A: 4}), (other, {})]:
        adopted = adopt(held, found, host="0")
        assert (adopted.terms, adopted.term_ends) == (terms, dict.fromkeys(terms, ends))


def test_a_retained_split_keeps_the_leadership_of_its_position_until_it_is_back() -> None:
    """Its log may be cut, and grow beyond the position again, while its cluster is inactive."""
    ends, same = (TermEnd(3, 5),), UNDER_4.attributes
    held = replace(UNDER_4, term_ends={B: ends})
    alone = assignment(2, owners={A: 0}, retained=frozenset({B}), attributes={A: same[A]})
    back = assignment(
        3,
        owners={A: 0, B: 0},
        starts={B: 7},
        since={B: 3},
        retained=frozenset({B}),
        attributes=same,
    )

    away = advance(adopt(held, alone, host="0"), {A: 12}, terms={A: 5})
    returned = adopt(away, back, host="0")

    assert (away.retained, away.terms, away.term_ends) == ({B: 7}, {A: 5, B: 4}, {B: ends})
    assert (returned.positions, returned.terms) == ({A: 12, B: 7}, {A: 5, B: 4})
    assert returned.term_ends == {B: ends}
    assert stream_offset.from_json(stream_offset.to_json(away)) == away


@pytest.mark.parametrize("change", ["position", "identity"])
def test_a_split_that_returns_as_another_one_or_elsewhere_has_no_leadership(change: str) -> None:
    away = StreamOffset(epoch=2, retained={B: 7}, terms={B: 4}, attributes={B: {IDENTITY: "first"}})
    identity = "second" if change == "identity" else "first"
    back = assignment(
        3,
        owners={B: 0},
        starts={B: 7 if change == "identity" else 9},
        since={B: 3},
        retained=frozenset({B}),
        attributes={B: {IDENTITY: identity}},
    )

    assert adopt(away, back, host="0").terms == {}


def test_only_what_the_host_holds_is_retained_and_nothing_that_it_reads() -> None:
    held = StreamOffset(epoch=1, owners={A: 0, B: 0}, positions={A: 1, B: 2})

    adopted = adopt(held, assignment(owners={A: 0}, retained=frozenset({A, B, C})), host="0")

    assert (adopted.positions, adopted.retained) == ({A: 1}, {B: 2})


def test_another_split_by_the_name_of_a_held_one_starts_where_the_assignment_says() -> None:
    held = StreamOffset(
        epoch=2, owners={A: 0, B: 0}, positions={A: 40, B: 40}, attributes={A: {IDENTITY: "old"}}
    )
    attributes = {A: {IDENTITY: "new"}, B: {IDENTITY: "new"}}

    adopted = adopt(
        held,
        assignment(3, owners={A: 0, B: 0}, starts={A: 5, B: 5}, attributes=attributes),
        host="0",
    )

    assert adopted.positions == {A: 5, B: 40}
    assert adopted.starts == {A: 5}


def test_an_event_stays_queued_until_an_assignment_acknowledges_it() -> None:
    host = registered().send_event(0, SourceEvent(name="hello"))

    silent = host.on_assignment(assignment(2))
    heard = silent.on_assignment(assignment(3, events_seen={"0": 1}))

    assert [event.number for event in silent.outbox] == [1]
    assert heard.outbox == ()


def test_readers_run_on_the_hosts_that_are_not_idle() -> None:
    several = assignment(
        parallelism=5, incarnations={"0": 1, "1": 1, "2": 1}, idle_hosts=frozenset({"1"})
    )

    assert {name: list(readers_on(several, name)) for name in "012"} == {
        "0": [0, 2, 4],
        "1": [],
        "2": [1, 3],
    }


def test_a_host_that_is_to_come_holds_no_split_and_one_that_leaves_may() -> None:
    """Hosts "1" and "2" have no readers; only "1" has ever registered."""
    newest = assignment(
        incarnations={"0": 1, "1": 1, "2": 0}, idle_hosts=frozenset({"1", "2"}), owners={A: 0}
    )

    assert adopt(StreamOffset(), replace(newest, starts={A: 0}), host="0").hosts == ("0", "1")


def reading(offset: StreamOffset, newest: Assignment) -> ReaderHost:
    """A host that has registered, and adopted an assignment."""
    host, base = registered(offset).on_assignment(newest).base()
    assert base is not None
    return host.on_planned(base)


def test_readers_request_missing_splits_while_some_are_left() -> None:
    newest = assignment(
        parallelism=3,
        owners={A: 0, B: 0, C: 1},
        starts={A: 0, B: 0, C: 0},
        look_ahead=2,
        no_more_splits=frozenset({2}),
    )

    assert reading(StreamOffset(epoch=1), newest).requests() == {1: 1}
    assert reading(StreamOffset(epoch=1), replace(newest, look_ahead=0)).requests() == {}
    assert registered().on_assignment(newest).requests() == {}, "it has adopted nothing yet"
    held = StreamOffset(epoch=1, parallelism=3, readers=(0, 1, 2))
    waiting = registered(held).on_assignment(newest)
    assert waiting.requests() == {}, "what it holds may be of an earlier life of its readers"


def test_custom_events_are_taken_once_and_in_their_order() -> None:
    events = tuple(
        NumberedEvent(number=n, subtask_id=s, event=SourceEvent(name=str(n)))
        for n, s in ((2, 0), (1, 1), (3, 7))
    )
    host = reading(StreamOffset(epoch=1), assignment(owners={A: 0}, starts={A: 0}, events=events))

    host, taken = host.take_events()

    assert [e.number for e in taken] == [1, 2], "the third is for another host's reader"
    assert host.take_events() == (host, ())


def test_a_new_split_is_not_reported_at_the_position_of_a_previous_one_of_its_name() -> None:
    former = StreamOffset(epoch=1, parallelism=1, readers=(0,), owners={A: 0}, positions={A: 50})
    anew = replace(former, positions={A: 3, B: 1}, owners={A: 0, B: 0}, starts={A: 3})

    assert registered(former).on_assignment(assignment()).base()[0].on_planned(anew).committed == {}
    same = replace(anew, starts={B: 1})
    host = registered(former).on_assignment(assignment()).base()[0].on_planned(same)
    assert host.committed == {A: 50}


def test_hosts_beside_are_named_until_an_epoch_names_its_hosts() -> None:
    host = replace(registered(StreamOffset()), former_hosts=("10", "2"))

    def told(host: ReaderHost) -> tuple[str, ...]:
        report = host.report(sequence=1)
        assert report is not None
        return report.hosts

    assert told(host) == ("0", "2", "10")
    # A micro-batch of the same epoch says nothing of hosts.
    same = host.on_assignment(assignment()).on_planned(host.durable)
    assert told(same) == ("0", "2", "10")
    adopted = host.on_assignment(assignment()).on_planned(replace(host.durable, epoch=7))
    assert told(adopted) == ()


def test_attributes_of_the_splits_of_another_host_are_left_out() -> None:
    attributes = {s: {IDENTITY: str(s)} for s in (A, B, C)}
    newest = assignment(
        incarnations={"x": 1, "y": 1},
        owners={A: 0, B: 1},
        starts={A: 0, B: 0},
        attributes=attributes,
    )

    for host, split in (("x", A), ("y", B)):
        assert adopt(StreamOffset(), newest, host=host).attributes == {split: attributes[split]}
