"""Large documents in parts.

Nothing that a stored head names is overwritten, and damage is noticed.
"""

import random
import string
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from balanced_source.documents import storage
from balanced_source.documents.parts import (
    PARTS,
    Content,
    Part,
    PartRef,
    allocate,
    assemble,
    cut,
    is_part,
    lay_out,
    part_names,
    parts_of,
    with_parts,
)
from balanced_source.documents.storage import Blob
from balanced_source.errors import CorruptDocumentError, StateError


@pytest.fixture(autouse=True)
def _small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "PLAIN_LIMIT", 100)
    monkeypatch.setattr(storage, "BLOB_LIMIT", 200)


def text(size: int, seed: int = 0) -> str:
    """Text that hardly compresses."""
    return "".join(random.Random(seed).choices(string.ascii_letters, k=size))


def stored(content: Content, named: Sequence[PartRef] = ()) -> tuple[Blob, list[Blob]]:
    head, parts = lay_out(content)
    return with_parts(head, allocate(parts, named)), [part.blob for part in parts]


@pytest.mark.parametrize(
    "content",
    [
        Content(text(50)),
        Content(text(150)),
        Content(text(900)),
        Content(text(50), base=text(900)),
        Content(text(150), base=text(10)),
    ],
)
def test_a_stored_document_is_read(content: Content) -> None:
    head, parts = stored(content)

    assert assemble(head, parts) == content
    assert len(parts_of(head)) == len(parts)
    sizes = [len(part.data) for part in lay_out(content)[1]]
    assert all(size <= 200 for size in sizes)


def test_only_large_documents_have_parts() -> None:
    assert stored(Content(text(50)))[1] == []
    assert len(stored(Content(text(900)))[1]) > 1


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 2**16), min_size=1, max_size=12))
def test_parts_of_the_stored_head_are_never_overwritten(seeds: list[int]) -> None:
    """Documents follow each other.

    Of some only the parts were written, because their head was refused.
    """
    slots: dict[int, str] = {}
    named: tuple[PartRef, ...] = ()
    written: tuple[PartRef, ...] = ()
    for seed in seeds:
        parts = cut(text(50 + seed % 900, seed))
        refs = allocate(parts, named, written)
        assert len({ref.number for ref in refs}) == len({ref.digest for ref in refs})
        slots |= {ref.number: ref.digest for ref in refs}
        assert all(slots[ref.number] == ref.digest for ref in named), (
            "the stored head still finds its parts"
        )
        written = tuple(ref for ref in (*written, *refs) if slots[ref.number] == ref.digest)
        if seed % 2:
            named, written = refs, ()
    assert all(number < PARTS for number in slots)


def test_a_part_that_is_stored_already_stays_where_it_is() -> None:
    parts = cut(text(500))
    refs = allocate(parts, ())

    assert allocate(parts, refs) == refs


@pytest.mark.parametrize(
    "damage", [Blob(), Blob(binary={"part": "AAAA"}), Blob(binary={"part": "no base64!"})]
)
def test_a_part_that_is_another_is_noticed(damage: Blob) -> None:
    head, parts = stored(Content(text(900)))
    assert is_part(parts[1], parts_of(head)[1])
    parts[1] = damage

    assert not is_part(damage, parts_of(head)[1])
    with pytest.raises(CorruptDocumentError, match="part 1 is not the one that the head names"):
        assemble(head, parts)


def test_a_malformed_list_of_parts_is_noticed() -> None:
    with pytest.raises(CorruptDocumentError, match=r"parts\.json is malformed"):
        parts_of(Blob(data={"parts.json": "[[1]]"}))


def test_a_too_large_document_is_reported() -> None:
    with pytest.raises(StateError, match="does not fit into 8 parts"):
        allocate(cut(text(5000)), ())


def test_half_of_the_parts_are_kept_for_the_document_that_follows() -> None:
    parts = [Part(digest=str(number), data=b"x") for number in range(PARTS // 2 + 1)]

    refs = allocate(parts[:-1], ())
    following = allocate(
        [Part(digest=f"next {part.digest}", data=b"y") for part in parts[:-1]], refs
    )
    assert {ref.number for ref in refs}.isdisjoint(ref.number for ref in following)
    with pytest.raises(StateError, match="a document of 9 bytes"):
        allocate(parts, ())


def test_the_number_that_was_given_back_last_is_taken_last() -> None:
    first = allocate([Part(digest="a", data=b"a")], ())
    second = allocate([Part(digest="b", data=b"b")], first)
    third = allocate([Part(digest="c", data=b"c")], second)

    assert [ref.number for refs in (first, second, third) for ref in refs] == [0, 1, 2]


@pytest.mark.parametrize(
    ("named", "expected"), [((), [0, 1]), ((2, 5), [6, 7]), ((5, 2), [6, 7]), ((3, 15), [0, 1])]
)
def test_new_parts_come_behind_the_newest_stored_one(
    named: tuple[int, ...], expected: list[int]
) -> None:
    """A late reader may still read the parts of the former head."""
    parts = [Part(digest=digest, data=b"x") for digest in ("a", "b")]

    refs = allocate(parts, [PartRef(number, f"former {number}") for number in named])

    assert refs == tuple(
        PartRef(number, digest) for number, digest in zip(expected, "ab", strict=True)
    )


@pytest.mark.parametrize(("size", "is_plain"), [(99, True), (100, True), (101, False)])
def test_a_small_document_is_stored_as_text(size: int, *, is_plain: bool) -> None:
    """People can read it with kubectl."""
    blob = storage.pack("é" * (size // 2) + "a" * (size % 2))

    assert bool(blob.data) is is_plain
    assert bool(blob.binary) is not is_plain


def test_a_document_of_exactly_the_limit_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    document = text(500)
    size = len(storage.compress(document))
    monkeypatch.setattr(storage, "BLOB_LIMIT", size)
    assert storage.unpack(storage.pack(document)) == document
    monkeypatch.setattr(storage, "BLOB_LIMIT", size - 1)
    with pytest.raises(StateError, match=f"a document of {size} bytes"):
        storage.pack(document)


def test_names_are_known_before_there_is_a_part() -> None:
    assert part_names("orders-assignment")[0] == "orders-assignment-0"
    assert len(part_names("orders-assignment")) == PARTS


def test_parts_of_a_head_that_was_never_stored_give_their_numbers_back() -> None:
    stored_refs = allocate([Part(digest=f"s{n}", data=b"s") for n in range(PARTS // 2)], ())
    given_up = allocate([Part(digest=f"g{n}", data=b"g") for n in range(PARTS // 2)], stored_refs)

    wanted = [Part(digest=f"w{n}", data=b"w") for n in range(PARTS // 2)]
    refs = allocate(wanted, stored_refs, given_up)

    assert {ref.number for ref in refs} == {ref.number for ref in given_up}
