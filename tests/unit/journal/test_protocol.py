"""The protocol of the journal: every interleaving, seeded bugs, and what is refused."""

from dataclasses import replace

import pytest

from balanced_source.documents import journal
from balanced_source.documents.journal import JournalRecord, RecordKey
from balanced_source.errors import ContractViolationError, CorruptDocumentError, JournalError
from balanced_source.host.journal import Attempt, Emit, SealResult, close, folded, run
from proof.journal import BUGS, JOURNAL, Closing, S, StoreOf, World, explored, record


def test_all_rules_hold_in_every_interleaving() -> None:
    worlds, broken = explored()

    assert broken == set()
    assert worlds > 10_000


@pytest.mark.parametrize(("make", "closes", "breaks"), BUGS)
def test_each_seeded_bug_breaks_a_rule(make: type[Attempt], closes: Closing, breaks: str) -> None:
    """Or the exploration would prove nothing."""
    _, broken = explored(make, closes, until=breaks)

    assert breaks in broken


def test_a_record_that_does_not_continue_is_refused() -> None:
    with pytest.raises(ContractViolationError, match="does not continue split"):
        folded({S: 3}, [record(1, 2, 5)])
    with pytest.raises(ContractViolationError, match="journal of another query"):
        folded({S: 3}, [record(1, 3, 5), replace(record(1, 3, 6), key=RecordKey(JOURNAL, 1, 1))])


def test_unread_splits_keep_their_start() -> None:
    other = ("server", "other")

    assert folded({S: 3, other: 7}, [record(1, 3, 5)]) == {S: 5, other: 7}
    assert folded({S: 3}, []) == {S: 3}


def test_a_close_without_an_answer_is_retried() -> None:
    class Silent(StoreOf):
        def seal(self, made: JournalRecord) -> SealResult:
            return SealResult.UNKNOWN

    assert close(Silent(World()), JOURNAL, 1, [0]) is None


def test_a_store_that_takes_a_record_and_does_not_have_it_fails_the_task() -> None:
    """Nothing was emitted, so Spark may run the task again."""

    class Forgetful(StoreOf):
        def seal(self, made: JournalRecord) -> SealResult:
            return SealResult.UNKNOWN

        def read(self, key: RecordKey) -> None:
            return None

    attempt = Attempt(key=RecordKey(JOURNAL, 1, 0))

    with pytest.raises(JournalError, match="of reader 0, and does not have it afterwards"):
        run(attempt, Forgetful(World()), lambda _: record(1, 0, 1))


def test_a_record_that_lies_where_another_one_belongs_is_corrupt() -> None:
    made = record(1, 0, 1)
    text = journal.encode(made, source="shop/orders")

    assert journal.decode(text, source="shop/orders", key=made.key) == made
    with pytest.raises(CorruptDocumentError, match="lies where"):
        journal.decode(text, source="shop/orders", key=RecordKey(JOURNAL, 1, 1))


def test_an_attempt_fetches_for_its_own_task_only() -> None:
    attempt = Attempt(key=RecordKey(JOURNAL, 1, 0))

    assert run(attempt, StoreOf(World()), lambda _: record(1, 0, 1)) == Emit(
        record(1, 0, 1), is_buffered=True
    )
    with pytest.raises(ContractViolationError, match="was fetched for"):
        run(attempt, StoreOf(World()), lambda _: record(2, 0, 1))
