"""Where a log was cut, found by questions alone; a model of replicas says where it truly was."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from balanced_source.documents.stream_offset import TermEnd
from balanced_source.host.ends import Mark
from balanced_source.host.log_check import KEPT, STEPS, Found, LogCheck

Log = list[tuple[int, int]]
"""Records: leadership, and a number that no other record has."""


def ends(log: Sequence[tuple[int, int]], asked: int) -> TermEnd:
    """What the leader of a log answers.

    A broker says that a leadership before its first record ends there.
    """
    upto = [i for i, (term, _) in enumerate(log) if term <= asked]
    return TermEnd(log[upto[-1]][0], upto[-1] + 1) if upto else TermEnd(asked, 0)


def check(log: Log, mark: Mark, term: int, *, steps: int = STEPS, kept: int = KEPT) -> Found:
    """Run a check against a log."""
    checked = LogCheck(mark, term, steps=steps, kept=kept)
    while checked.question is not None:
        checked.take(ends(log, checked.question))
    return checked.found()


def agree(one: Log, other: Log) -> int:
    """Number of records that two logs have in common."""
    return next(
        (i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
        min(len(one), len(other)),
    )


def written(*terms: int) -> Log:
    """Records of these leaderships, with numbers that tell those of one leadership apart."""
    return [(term, number) for number, term in enumerate(terms)]


def test_two_leaders_in_a_row_with_records_that_the_other_never_saw() -> None:
    """The first one has five records more; its end alone says that nothing was cut."""
    second = written(1, 1, 2, 2, 2)
    first = written(1, 1, 1, 1, 1, 1, 1)
    past = check(second, Mark(position=2, term=1), 2).past
    assert past == (TermEnd(1, 2),)

    assert check(first, Mark(position=5, term=2, past=past), 3) == Found(2, (TermEnd(1, 7),))
    assert check(first, Mark(position=5, term=2), 3).cut is None, "without that knowledge"


def test_a_log_with_older_leaderships_alone_is_cut_where_the_oldest_known_one_ended() -> None:
    """That is the best guess: nothing says where its records end among those that were read."""
    checked = LogCheck(Mark(position=9, term=5, past=(TermEnd(3, 4),)), 6)

    checked.take(TermEnd(1, 7))
    while checked.question is not None:
        checked.take(TermEnd(1, 7))

    assert checked.found().cut == 4


def test_an_end_where_reading_stands_does_not_tell_how_far_its_leadership_wrote() -> None:
    """So all former leaderships of the present log are asked for, from the first one on."""
    log = written(0, 0, 1, 1, 2, 3)
    mark = Mark(position=1, term=2, past=(TermEnd(1, 1),))

    assert check(log, mark, 3) == Found(None, (TermEnd(0, 2), TermEnd(1, 4), TermEnd(2, 5)))


def test_a_log_without_any_of_the_records_is_cut_at_its_start() -> None:
    assert check([], Mark(position=5, term=2), 3).cut == 0
    silent = LogCheck(Mark(position=5, term=2), 3)
    silent.take(TermEnd(-1, -1))
    assert silent.found() == Found(0), "a broker that has no leadership to name"


def test_records_that_still_exist_are_not_a_cut_under_any_leader() -> None:
    log = written(1, 1, 2, 2)

    assert check(log, Mark(position=4, term=2), 2).cut is None, "the same leadership"
    assert check(log, Mark(position=4, term=2), 9) == Found(None, (TermEnd(2, 4),))
    assert check(log + written(3, 3), Mark(position=4, term=2), 4) == Found(
        None, (TermEnd(2, 4), TermEnd(3, 6))
    )


def test_the_number_of_questions_and_of_kept_ends_is_bounded() -> None:
    log = written(*range(100))
    checked = LogCheck(Mark(position=1, term=0), 100)
    asked = 0
    while checked.question is not None:
        checked.take(ends(log, checked.question))
        asked += 1

    assert asked <= STEPS + 1
    assert checked.found().past == tuple(TermEnd(term, term + 1) for term in range(100 - KEPT, 100))


def test_the_order_of_questions_and_answers_is_kept() -> None:
    checked = LogCheck(Mark(position=5, term=2), 3)
    with pytest.raises(ValueError, match="not complete"):
        checked.found()
    checked.take(TermEnd(2, 9))
    with pytest.raises(ValueError, match="complete"):
        checked.take(TermEnd(2, 9))
    with pytest.raises(ValueError, match="unknown"):
        LogCheck(Mark(position=5), 3)


@settings(max_examples=1_000)
@given(st.data())
def test_the_cut_is_where_log_and_read_records_diverge(data: st.DataObject) -> None:
    """Any replica may lead next, whatever it has missed; a query looks at times, and reads on.

    It looks for the first time before there are records. What was before its first look, it does
    not know.
    """
    logs: list[Log] = [[], [], []]
    leader, term, number = 0, 0, 0
    read: Log = []
    mark = Mark(position=0, term=0)
    for _ in range(data.draw(st.integers(1, 14))):
        match data.draw(st.sampled_from(["write", "write", "copy", "lead", "look", "look"])):
            case "write":
                for _ in range(data.draw(st.integers(1, 3))):
                    logs[leader].append((term, number := number + 1))
            # a follower drops what its leader does not have, and gets some of the rest
            case "copy":
                follower = data.draw(st.integers(0, 2))
                common = agree(logs[follower], logs[leader])
                logs[follower] = logs[leader][
                    : data.draw(st.integers(common, max(common, len(logs[leader]))))
                ]
            case "lead":
                leader, term = data.draw(st.integers(0, 2)), term + data.draw(st.integers(1, 3))
            case "look":
                log = logs[leader]
                found = Found(None, mark.past)
                if mark.term != term or len(log) < mark.position:
                    found = check(log, mark, term, steps=99, kept=99)
                    true = agree(read, log)
                    assert found.cut == (true if true < len(read) else None)
                    assert all(ends(log, end.term).end == end.end for end in found.past)
                reached = (
                    found.cut
                    if found.cut is not None
                    else data.draw(st.integers(len(read), len(log)))
                )
                read = log[:reached]
                mark = Mark(position=reached, term=term, past=found.past)


def test_the_newest_common_leadership_may_be_older_than_the_answer() -> None:
    """The leader has records of leadership 2, which were never read, and fewer of leadership 1."""
    read = Mark(position=6, term=3, past=(TermEnd(1, 4),))

    assert check(written(1, 1, 2, 2, 2), read, 4).cut == 2


def test_ends_of_former_leaderships_are_kept_where_both_logs_are_the_same() -> None:
    log = written(1, 1, 2, 2, 3, 3, 4)
    past = (TermEnd(1, 2), TermEnd(2, 4))

    found = check(log, Mark(position=6, term=3, past=past), 5, kept=99)

    assert found == Found(None, (*past, TermEnd(3, 6), TermEnd(4, 7)))


def test_ends_of_leaderships_that_the_present_log_lacks_are_dropped() -> None:
    """All records of leaderships 2 and 3 are gone."""
    past = (TermEnd(1, 3), TermEnd(2, 6))

    found = check(written(1, 1, 1, 1, 1), Mark(position=8, term=3, past=past), 4, kept=99)

    assert found == Found(3, (TermEnd(1, 5),))


def test_an_end_exactly_where_both_logs_part_is_kept_if_a_later_leadership_ends_there() -> None:
    """Leadership 2 wrote nothing, so the records of leadership 1 end where those of 2 do."""
    checked = LogCheck(Mark(position=5, term=2, past=(TermEnd(1, 5),)), 3)

    checked.take(TermEnd(2, 5))

    assert checked.found() == Found(None, (TermEnd(1, 5), TermEnd(2, 5)))


def test_an_end_behind_the_place_where_both_logs_part_moves_there() -> None:
    """The present log has no records of leadership 2 behind it."""
    checked = LogCheck(Mark(position=9, term=3, past=(TermEnd(1, 5), TermEnd(2, 7))), 4)

    checked.take(TermEnd(3, 6))

    assert checked.found() == Found(6, (TermEnd(1, 5), TermEnd(2, 6), TermEnd(3, 6)))


def test_the_first_leadership_of_a_log_counts_like_any_other() -> None:
    log = written(0, 0, 1)

    assert check(log, Mark(position=2, term=0), 2) == Found(None, (TermEnd(0, 2), TermEnd(1, 3)))
    assert check(log, Mark(position=2, term=0), 0) == Found(None, (TermEnd(0, 2),))


def test_a_check_is_complete_when_later_leaderships_were_asked_for_too() -> None:
    """Where both logs part is known then, and not yet what later checks need."""
    checked = LogCheck(Mark(position=2, term=1), 4)
    checked.take(TermEnd(1, 2))

    assert checked.question == 3
    with pytest.raises(ValueError, match="not complete"):
        checked.found()
    checked.take(TermEnd(3, 5))
    checked.take(TermEnd(1, 2))
    assert checked.question is None
    assert checked.found() == Found(None, (TermEnd(1, 2), TermEnd(3, 5)))
