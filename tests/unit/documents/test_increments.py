"""Assignments as increments.

They read as if they had been published whole, and small changes are small.
"""

import hashlib
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from balanced_source.api import SplitId
from balanced_source.documents import assignment as whole
from balanced_source.documents import increments, storage
from balanced_source.documents.assignment import Assignment
from balanced_source.documents.increments import Base
from balanced_source.documents.parts import Content
from balanced_source.errors import CorruptDocumentError

IDS: list[SplitId] = [("c", f"t{i // 10}", i % 10) for i in range(60)]
NAMES = st.sampled_from(IDS)


@st.composite
def assignments(draw: st.DrawFn) -> Assignment:
    return Assignment(
        epoch=draw(st.integers(1, 9)),
        parallelism=draw(st.integers(1, 9)),
        owners=draw(st.dictionaries(NAMES, st.integers(0, 9))),
        starts=draw(st.dictionaries(NAMES, st.integers(0, 99) | st.none())),
        since=draw(st.dictionaries(NAMES, st.integers(0, 9))),
        attributes=draw(st.dictionaries(NAMES, st.just({"stop": 4}))),
        retained=frozenset(draw(st.sets(NAMES))),
        settings={"kafka": {}},
    )


@pytest.fixture
def _small_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "PLAIN_LIMIT", 400)


@pytest.mark.usefixtures("_small_limit")
@settings(max_examples=200, deadline=None)
@given(st.lists(assignments(), min_size=1, max_size=6))
def test_each_reads_as_if_it_were_whole(published: list[Assignment]) -> None:
    base: Base | None = None
    for assignment in published:
        text, base = increments.encode(assignment, source="uid", base=base)
        content = Content(text, base.text if base is not None else None)
        assert increments.decode(content, source="uid") == assignment
        if base is not None:
            assert increments.apply(text, base, source="uid") == assignment


def large(epoch: int = 1, splits: int = 20_000) -> Assignment:
    """Read by a hundred readers, each split begun again."""
    ids: list[SplitId] = [("main", f"topic-{i // 50:04d}", i % 50) for i in range(splits)]
    return Assignment(
        epoch=epoch,
        parallelism=100,
        owners={s: i % 100 for i, s in enumerate(ids)},
        starts={s: 7919 * i for i, s in enumerate(ids)},
    )


def test_a_rescale_that_moves_few_splits_publishes_little() -> None:
    adopted = replace(large(), starts={})
    first, base = increments.encode(adopted, source="uid", base=None)
    assert base is not None
    moved = dict.fromkeys(list(large().owners)[::100], 100)
    after = replace(adopted, epoch=2, parallelism=101, owners={**adopted.owners, **moved})

    text, still = increments.encode(after, source="uid", base=base)
    assert still is base, "the large part is not written again"
    assert len(first) < 1_000
    assert len(text) < len(base.text) / 8
    assert increments.apply(text, base) == after


def test_positions_that_are_adopted_do_not_stay_in_the_base() -> None:
    _, base = increments.encode(large(), source="uid", base=None)
    _, fresh = increments.encode(replace(large(2), starts={}), source="uid", base=base)

    assert base is not None
    assert fresh is not None
    assert len(fresh.text) < len(base.text) / 2


def test_an_increment_may_drop_a_whole_table() -> None:
    """Starts are gone at once when all splits are adopted."""
    before = replace(large(), starts=dict(list(large().starts.items())[:9_000]))
    _, base = increments.encode(before, source="uid", base=None)
    after = replace(before, epoch=2, starts={})

    text, still = increments.encode(after, source="uid", base=base)

    assert base is not None
    assert still is base
    assert increments.apply(text, base, source="uid") == after


def test_a_change_of_everything_becomes_a_new_base() -> None:
    _, base = increments.encode(large(), source="uid", base=None)
    other = replace(large(2), owners={s: (o + 1) % 100 for s, o in large().owners.items()})

    _, fresh = increments.encode(other, source="uid", base=base)
    assert fresh is not None
    assert fresh is not base
    assert fresh.assignment == other


@pytest.mark.parametrize(("moved", "is_new"), [(1_800, False), (2_200, True)])
def test_more_than_a_quarter_of_the_splits_moved_becomes_a_new_base(
    moved: int, is_new: bool
) -> None:
    """Also where the increment would be small, because most of the base is something else."""
    before = large(splits=8_000)
    _, base = increments.encode(before, source="uid", base=None)
    taken = dict.fromkeys(list(before.owners)[:moved], 7)

    _, following = increments.encode(
        replace(before, epoch=2, owners=before.owners | taken), source="uid", base=base
    )
    assert base is not None
    assert (following is not base) == is_new


@pytest.mark.parametrize(("begun", "is_new"), [(0, True), (1_800, True), (2_200, False)])
def test_a_base_most_of_whose_starts_are_gone_is_replaced(begun: int, is_new: bool) -> None:
    before = large(splits=8_000)
    _, base = increments.encode(before, source="uid", base=None)
    starts = dict(list(before.starts.items())[:begun])

    _, following = increments.encode(
        replace(before, epoch=2, starts=starts), source="uid", base=base
    )
    assert (following is not base) == is_new


@pytest.mark.parametrize(("added", "is_new"), [(2_600, False), (2_700, True)])
def test_splits_that_are_new_count_beside_all_that_there_are_then(added: int, is_new: bool) -> None:
    before, after = large(splits=8_000), large(2, splits=8_000 + added)
    _, base = increments.encode(before, source="uid", base=None)

    _, following = increments.encode(after, source="uid", base=base)
    _, back = increments.encode(before, source="uid", base=following)
    assert base is not None
    assert (following is not base) == is_new
    assert back is following, "what is gone is listed in a few bytes"


def test_an_increment_of_up_to_a_quarter_of_the_limit_of_plain_text_keeps_its_base(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also where the base itself is small."""
    before, after = large(splits=100), large(2, splits=100)
    monkeypatch.setattr(storage, "PLAIN_LIMIT", 100)
    monkeypatch.setattr(increments, "TOO_MUCH", 1)
    _, base = increments.encode(before, source="uid", base=None)
    assert base is not None
    text, _ = increments.encode(after, source="uid", base=base)
    monkeypatch.setattr(increments, "TOO_MUCH", 100)

    monkeypatch.setattr(storage, "PLAIN_LIMIT", len(text))
    assert increments.encode(after, source="uid", base=base) == (text, base)
    monkeypatch.setattr(storage, "PLAIN_LIMIT", len(text) - 1)
    assert increments.encode(after, source="uid", base=base)[1] is not base


def test_a_base_is_named_by_half_of_its_digest() -> None:
    """A later release reads the increments of this one."""
    _, base = increments.encode(large(), source="uid", base=None)

    assert base is not None
    assert base.digest == hashlib.sha256(base.text.encode()).hexdigest()[:32]


def test_a_small_assignment_is_whole() -> None:
    text, base = increments.encode(large(splits=10), source="uid", base=None)

    assert base is None
    assert whole.decode(text, source="uid") == large(splits=10)
    assert increments.decode(Content(text), source="uid") == large(splits=10)


def test_an_increment_upon_another_base_is_refused() -> None:
    text, base = increments.encode(large(), source="uid", base=None)
    _, other = increments.encode(large(5), source="uid", base=None)
    assert base is not None
    assert other is not None

    with pytest.raises(CorruptDocumentError, match="another base"):
        increments.apply(text, other, source="uid")


def test_an_increment_of_another_source_is_refused() -> None:
    text, base = increments.encode(large(), source="uid", base=None)
    assert base is not None

    with pytest.raises(CorruptDocumentError, match="belongs to source uid, not to other"):
        increments.apply(text, base, source="other")


def test_a_document_read_again_continues_from_the_same_base() -> None:
    """An operator that starts again publishes an increment, not everything."""
    text, base = increments.encode(large(), source="uid", base=None)
    assert base is not None

    again, still = increments.encode(large(), source="uid", base=Base.read(base.text, source="uid"))
    assert again == text
    assert still is not None
    assert still.digest == base.digest


def test_an_assignment_that_people_can_read_is_published_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assignment = large(splits=5)
    text = whole.encode(assignment, source="uid")

    monkeypatch.setattr(storage, "PLAIN_LIMIT", len(text))
    assert increments.encode(assignment, source="uid", base=None) == (text, None)

    monkeypatch.setattr(storage, "PLAIN_LIMIT", len(text) - 1)
    _, base = increments.encode(assignment, source="uid", base=None)
    assert base is not None
    assert base.text == text
