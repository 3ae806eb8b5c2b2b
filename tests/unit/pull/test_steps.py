"""Single steps of an enumerator whose readers ask for splits: what they get, and what is kept."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from balanced_source.api import CallFailure, ReaderInfo, RebalanceCause, SplitId
from balanced_source.connectors.pull import Page, PagedPullSource, PullState, paging
from balanced_source.connectors.pull.dealing import least_loaded
from balanced_source.connectors.pull.enumerator import MAX_BACKOFF, PullingSplitEnumerator
from balanced_source.coordinator import CoordinatorState, ExecuteCall, HostState, ReportFact
from balanced_source.coordinator.context import CoordinatorContext
from balanced_source.errors import TransientDiscoveryError
from support.pull_source import ListNumbers, NumberLists, Numbers


def one(number: int, *, at: int = 0, stop: int = 2) -> Numbers:
    return Numbers(name=f"list-{number}", number=at, stop=stop)


def table(*splits: Numbers) -> dict[SplitId, Numbers]:
    return {split.split_id: split for split in splits}


class Step:
    """An enumerator and its readers; the names of lists stand for their splits."""

    def __init__(
        self,
        source: NumberLists | None = None,
        state: PullState[Numbers] | None = None,
        *,
        owned: Mapping[int, Collection[Numbers]] | None = None,
        readers: Collection[int] = (0, 1),
        keeps_finished: bool = False,
    ) -> None:
        splits = {s.split_id: (s, reader) for reader, held in (owned or {}).items() for s in held}
        self.context: CoordinatorContext[Any] = CoordinatorContext(
            CoordinatorState(
                parallelism=len(readers),
                hosts={"0": HostState()},
                owners={s: owner for s, (_, owner) in splits.items()},
                splits={s: split for s, (split, _) in splits.items()},
            ),
            keeps_finished=keeps_finished,
        )
        self.enumerator: Any = (source or NumberLists()).restore_enumerator(
            self.context, state or PullState()
        )
        self.enumerator.start()
        self.context.set_readers({reader: ReaderInfo(subtask_id=reader) for reader in readers})

    @property
    def owners(self) -> dict[str, int]:
        return {str(s[1]): owner for s, owner in self.context.current_assignments().items()}

    @property
    def pending(self) -> list[str]:
        return [str(s[1]) for s in self.enumerator.state.pending]

    @property
    def calls(self) -> list[ExecuteCall]:
        return [e for e in self.context.turn.effects if isinstance(e, ExecuteCall)]

    @property
    def told(self) -> frozenset[int]:
        """Readers that were told that no split follows."""
        return self.context.state.no_more_splits


LISTED = PullState(pending=table(one(0), one(1), one(2)), is_listed=True)


def test_a_split_that_comes_back_goes_to_the_reader_with_the_fewest_unread_splits() -> None:
    """Where read splits stay assigned they are no load."""
    read = [one(5, at=2), one(6, at=2)]
    state: PullState[Numbers] = PullState(is_listed=True, finished=frozenset(table(*read)))
    step = Step(state=state, owned={0: [one(7)], 1: read}, keeps_finished=True)

    step.enumerator.add_splits_back([one(0)], 0)
    step.enumerator.rebalance(RebalanceCause.RESCALE)

    assert step.owners["list-0"] == 1


@pytest.mark.parametrize(
    ("readers", "owned", "first"), [((0, 1), [0, 0], 1), ((2, 1, 0), [], 0), ((0, 1, 2), [0, 1], 2)]
)
def test_what_no_one_asked_for_goes_to_the_reader_with_the_fewest_splits(
    readers: tuple[int, ...], owned: list[int], first: int
) -> None:
    given = least_loaded([one(0)], readers, owned)

    assert given == {first: [one(0)]}


def test_splits_without_a_request_are_spread_evenly() -> None:
    given = least_loaded([one(n) for n in range(5)], (0, 1), [0])

    assert [[s.name for s in given[reader]] for reader in (0, 1)] == [
        ["list-1", "list-3"],
        ["list-0", "list-2", "list-4"],
    ]
    given = least_loaded([one(n) for n in range(3)], (0, 1), [0, 0])
    assert given == {1: [one(0), one(1)], 0: [one(2)]}


@pytest.mark.parametrize(("known", "retained", "continued"), [(2, 1, 2), (1, 2, 2), (1, 0, 1)])
def test_a_position_that_a_host_keeps_counts_only_if_it_is_further(
    known: int, retained: int, continued: int
) -> None:
    state = PullState(pending=table(one(0, at=known, stop=9)), is_listed=True)
    step = Step(state=state)
    kept = ReaderInfo(subtask_id=0, retained_splits=(one(0, at=retained, stop=9),))
    step.context.set_readers({0: kept})

    step.enumerator.add_readers([0])

    assert step.enumerator.state.pending == table(one(0, at=continued, stop=9))


def test_requests_follow_renumbered_readers_and_end_with_removed_ones() -> None:
    """Splits near to a reader's host are still given to it under its new number."""
    source = NumberLists(near=(("list-1", "host-0"), ("list-0", "host-1")))
    step = Step(source, PullState(), readers=(0, 1, 2))
    for reader in (0, 1, 2):
        step.enumerator.handle_split_request(reader, f"host-{reader}")

    step.context.set_readers({reader: ReaderInfo(subtask_id=reader) for reader in (0, 1)})
    step.enumerator.handle_renumbered({0: 1, 1: 0})
    step.enumerator.handle_listing(step.calls[0].call, [one(0), one(1), one(2)])

    assert step.owners == {"list-1": 1, "list-0": 0}
    assert step.pending == ["list-2"]


def test_only_readers_that_asked_in_vain_are_told_that_no_split_follows() -> None:
    step = Step(state=LISTED)

    step.enumerator.handle_split_requests({0: 3}, None)
    assert (len(step.owners), step.told) == (3, frozenset())
    step.enumerator.handle_split_requests({1: 1}, None)

    assert step.told == {1}


def test_a_request_waits_until_splits_are_listed() -> None:
    step = Step(source=NumberLists(count=1))
    step.enumerator.handle_split_requests({0: 1, 1: 1}, None)
    assert (step.owners, step.told) == ({}, frozenset())

    step.enumerator.handle_listing(step.calls[0].call, [one(0)])

    assert step.owners == {"list-0": 0}
    assert step.told == {1}


def test_a_late_answer_changes_nothing() -> None:
    """An older question may be answered after a newer one, or after the listing is complete."""
    step = Step()
    (first,) = step.calls
    step.enumerator.handle_source_change(NumberLists(count=1))
    _, second = step.calls

    step.enumerator.handle_listing(first.call, [one(5)])
    assert step.pending == []
    step.enumerator.handle_listing(second.call, [one(1), one(0)])
    step.enumerator.handle_listing(second.call, [one(6)])

    assert step.pending == ["list-0", "list-1"]


def test_a_split_that_is_read_or_waits_is_not_listed_again() -> None:
    step = Step(owned={0: [one(0)]})
    step.enumerator.add_splits_back([one(1, at=1)], 1)

    step.enumerator.handle_listing(step.calls[0].call, [one(0), one(1), one(2)])
    step.enumerator.handle_split_requests({0: 3}, None)

    assert step.owners == {"list-0": 0, "list-1": 1, "list-2": 0}
    assert step.context.state.splits["lists", "list-1"].number == 1


def test_failed_listings_are_repeated_with_a_growing_delay_and_then_reported() -> None:
    step = Step()
    problems = []
    for _ in range(9):
        failure = CallFailure(TransientDiscoveryError("no answer"))
        step.enumerator.handle_listing(step.calls[-1].call, failure)
        problems.append(len(step.enumerator.problems()))

    delays = [call.delay for call in step.calls]
    assert problems == [0, 0, 1, 1, 1, 1, 1, 1, 1]
    assert delays == sorted(delays)
    assert (delays[0], max(delays) <= MAX_BACKOFF) == (0.0, True)
    step.enumerator.handle_listing(step.calls[-1].call, [one(0)])
    assert step.enumerator.problems() == {}


@pytest.mark.parametrize("keeps_finished", [False, True])
def test_a_split_that_comes_back_read_is_not_read_again(*, keeps_finished: bool) -> None:
    """Where nothing but Spark's checkpoint is stored it gets a reader all the same."""
    step = Step(state=PullState(is_listed=True), owned={0: [one(0)]}, keeps_finished=keeps_finished)
    step.context.state = CoordinatorState(retained=frozenset({one(0).split_id}))
    step.context.set_readers({})

    step.enumerator.add_splits_back([one(0, at=2)], 0)

    assert step.pending == (["list-0"] if keeps_finished else [])
    assert step.enumerator.state.finished == (
        frozenset({one(0).split_id}) if keeps_finished else frozenset()
    )
    assert step.context.state.retained == ({one(0).split_id} if keeps_finished else set())


def test_a_doubt_before_anything_is_listed_has_no_number() -> None:
    (problem,) = Step(state=PullState(is_doubtful=True)).enumerator.problems().values()

    assert "it is unknown what was read already of the splits. Nothing" in str(problem)


def test_what_may_have_been_read_is_not_given_out_without_consent() -> None:
    state = PullState(pending=table(one(0), one(1)), is_listed=True, is_doubtful=True)
    step = Step(state=state)

    step.enumerator.handle_split_requests({0: 1}, None)
    assert step.owners == {}
    (problem,) = step.enumerator.problems().values()
    assert "it is unknown what was read already of 2 splits. Nothing of that is read" in str(
        problem
    )

    step.enumerator.handle_source_change(NumberLists(may_repeat=True))
    assert step.owners == {"list-0": 0}
    assert step.enumerator.problems() == {}


@dataclass(frozen=True, slots=True, kw_only=True)
class PagedLists(PagedPullSource[Numbers]):
    """Lists that a test names page by page."""

    discovery_interval: float | None = 7.0
    may_repeat: bool = False

    def list_page(self, round_number: int, cursor: Any) -> ListNumbers:
        return ListNumbers(scope=f"after {cursor}", round=round_number)

    def create_split(self, split_id: SplitId, position: Any, attributes: Any) -> Numbers:
        return NumberLists().create_split(split_id, position, attributes)


class Pages(Step):
    def lists(self, page: Page[Numbers]) -> None:
        self.enumerator.handle_listing(self.calls[-1].call, page)

    @property
    def asked(self) -> list[tuple[str, float]]:
        return [(e.call.scope, e.delay) for e in self.calls if isinstance(e.call, ListNumbers)]


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> Pages:
    monkeypatch.setattr(paging, "FEW", 2)
    source: Any = PagedLists()
    return Pages(source)


def test_consent_is_needed_once(pages: Pages) -> None:
    """Otherwise it stays set, and the next lost state repeats everything without a question."""
    step = pages
    step.enumerator.state = replace(step.enumerator.state, is_doubtful=True)
    step.lists(Page(splits=(one(0), one(1), one(2)), cursor="a", has_more=True))
    step.enumerator.handle_split_requests({0: 9}, None)
    assert step.owners == {}

    consent: Any = PagedLists(may_repeat=True)
    step.enumerator.handle_source_change(consent)
    assert len(step.owners) == 3
    assert step.enumerator.state.is_doubtful, "there is another page"
    step.lists(Page(splits=(one(3),), cursor="b"))
    assert len(step.owners) == 4
    assert not step.enumerator.state.is_doubtful

    without: Any = PagedLists()
    step.enumerator.handle_source_change(without)
    step.lists(Page(splits=(one(4),), cursor="c"))
    assert len(step.owners) == 5
    assert step.enumerator.problems() == {}


def test_the_next_page_is_listed_once_few_splits_are_left(pages: Pages) -> None:
    pages.lists(Page(splits=(one(0), one(1), one(2)), cursor=1, has_more=True))
    pages.enumerator.handle_split_requests({0: 1}, None)
    assert pages.asked == [("after None", 0.0)], "two are left"

    pages.enumerator.handle_split_requests({0: 1}, None)
    assert pages.asked == [("after None", 0.0), ("after 1", 0.0)]
    pages.enumerator.handle_split_requests({0: 1}, None)
    assert len(pages.asked) == 2, "one listing at a time"


def test_a_page_that_leaves_few_splits_is_followed_by_the_next_at_once(pages: Pages) -> None:
    pages.lists(Page(splits=(one(0),), cursor=1, has_more=True))

    assert pages.asked[1:] == [("after 1", 0.0)]


def test_after_the_last_page_it_looks_again_after_the_interval(pages: Pages) -> None:
    pages.lists(Page(splits=(one(0),), cursor=1))
    assert pages.asked[1:] == [("after 1", 7.0)]

    pages.enumerator.handle_split_requests({0: 3}, None)
    assert len(pages.asked) == 2


def test_it_does_not_look_again_before_few_splits_are_left(pages: Pages) -> None:
    """What comes meanwhile is listed then, and the state stays small."""
    pages.lists(Page(splits=(one(0), one(1), one(2)), cursor=1))
    assert len(pages.asked) == 1
    pages.enumerator.handle_split_requests({0: 1}, None)
    assert len(pages.asked) == 1, "two are left"

    pages.enumerator.handle_split_requests({0: 1}, None)
    assert pages.asked[1:] == [("after 1", 0.0)]
    pages.lists(Page(cursor=1))
    assert pages.asked[2:] == [("after 1", 7.0)]


def test_a_listing_that_changes_nothing_leaves_the_state_as_it_is(pages: Pages) -> None:
    """The same object is not stored again."""
    pages.lists(Page(splits=(one(0),), cursor=1))
    before = pages.enumerator.snapshot_state()

    pages.lists(Page(splits=(one(0),), cursor=1))
    assert pages.enumerator.snapshot_state() is before
    pages.lists(Page(cursor=2))
    assert pages.enumerator.snapshot_state() is not before


def test_each_loss_is_reported_once_and_stays_a_problem(pages: Pages) -> None:
    pages.lists(Page(cursor=1, losses=("1 file came too late",)))
    pages.lists(Page(cursor=1, losses=("1 file came too late", "2 files changed")))

    facts = [e.message for e in pages.context.turn.effects if isinstance(e, ReportFact)]
    assert facts == ["1 file came too late", "2 files changed"]
    assert [str(problem) for problem in pages.enumerator.problems().values()] == [
        "1 file came too late; 2 files changed"
    ]
    pages.lists(Page(cursor=1))
    assert pages.enumerator.problems() == {}


@pytest.mark.parametrize(("interval", "delay"), [(7.0, 7.0), (None, 30.0)])
def test_a_refused_listing_is_repeated_and_keeps_its_cursor(
    interval: float | None, delay: float
) -> None:
    source: Any = PagedLists(discovery_interval=interval)
    pages = Pages(source, PullState(cursor=4))

    pages.lists(Page(splits=(one(0),), cursor=5, refusal="2 files are lost"))

    assert pages.asked == [("after 4", 0.0), ("after 4", delay)]
    assert (pages.pending, pages.enumerator.state.cursor) == ([], 4)
    assert [str(problem) for problem in pages.enumerator.problems().values()] == [
        "2 files are lost"
    ]


def test_a_copy_of_an_enumerator_continues_where_it_is(pages: Pages) -> None:
    pages.lists(Page(splits=(one(0), one(1)), cursor=1, has_more=True, losses=("lost",)))
    copy: PullingSplitEnumerator[Numbers] = pages.enumerator.fork(pages.context.fork())
    copy.context.set_readers(pages.context.readers)  # type: ignore[attr-defined]

    copy.handle_split_requests({0: 1}, None)

    assert [str(problem) for problem in copy.problems().values()] == ["lost"]
    effects = copy.context.turn.effects  # type: ignore[attr-defined]
    assert [e.call.scope for e in effects if isinstance(e, ExecuteCall)] == ["after 1"]
