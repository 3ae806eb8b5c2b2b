"""Documents at their limits: what is just small enough is stored, and what is larger is refused."""

import base64
import hashlib
import itertools
import json
import random
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balanced_source.api import SplitId
from balanced_source.documents import calls, columns, storage, stream_offset
from balanced_source.documents.report import MILLIS_BEHIND, seconds_behind
from balanced_source.documents.splits import decode_splits, encode_splits
from balanced_source.documents.storage import Blob, pack, unpack
from balanced_source.documents.stream_offset import VERSION, StreamOffset
from balanced_source.errors import (
    CorruptDocumentError,
    IncompatibleVersionError,
    StateError,
)
from support.builders import make_report
from support.world import kafka_source


def test_a_result_of_the_most_pages_is_cut_and_a_larger_one_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    result = [1, 2, 3]
    text = base64.b64encode(storage.compress(json.dumps(result, separators=(",", ":")))).decode()
    monkeypatch.setattr(calls, "MAX_PAGES", 2)

    monkeypatch.setattr(calls, "PAGE", -(-len(text) // 2))
    digest, pages = calls.cut(result)
    assert ("".join(pages), len(pages)) == (text, 2)
    assert digest == hashlib.sha256(text.encode()).hexdigest()[:32]
    assert calls.joined(pages, digest) == result

    monkeypatch.setattr(calls, "PAGE", -(-len(text) // 2) - 1)
    with pytest.raises(StateError, match=f"its {len(text)} bytes"):
        calls.cut(result)


def test_a_document_is_plain_up_to_a_limit_and_compressed_up_to_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = "".join(random.Random(1).choices(string.ascii_letters, k=500)) + "é"
    size, packed = len(text.encode()), storage.compress(text)

    monkeypatch.setattr(storage, "PLAIN_LIMIT", size)
    assert pack(text) == Blob(data={storage.PLAIN_KEY: text})
    monkeypatch.setattr(storage, "PLAIN_LIMIT", size - 1)
    monkeypatch.setattr(storage, "BLOB_LIMIT", len(packed))
    assert pack(text) == Blob(binary={storage.PACKED_KEY: base64.b64encode(packed).decode()})
    assert unpack(pack(text)) == text
    monkeypatch.setattr(storage, "BLOB_LIMIT", len(packed) - 1)
    with pytest.raises(StateError, match=f"{len(packed)} bytes"):
        pack(text)


@pytest.mark.parametrize(
    ("blob", "why"),
    [
        (Blob(), "neither document.json nor document.json.bz2 is there"),
        (Blob(binary={storage.PACKED_KEY: "é"}), "not in base64"),
        (Blob(binary={storage.PACKED_KEY: "AAAA"}), "does not decompress"),
    ],
    ids=["empty", "not base64", "not compressed"],
)
def test_a_blob_without_a_document_is_corrupt(blob: Blob, why: str) -> None:
    with pytest.raises(CorruptDocumentError, match=why):
        unpack(blob)


def test_a_document_in_several_compressed_files_is_limited_as_a_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    packed = storage.compress("x" * 600)

    monkeypatch.setattr(storage, "MAX_DOCUMENT", 1200)
    assert storage.decompress(packed + packed) == "x" * 1200
    monkeypatch.setattr(storage, "MAX_DOCUMENT", 1199)
    with pytest.raises(CorruptDocumentError, match="more than 1199 bytes"):
        storage.decompress(packed + packed)


def test_a_stream_offset_of_newer_software_names_both_versions() -> None:
    data = stream_offset.to_json(StreamOffset(epoch=4))

    with pytest.raises(IncompatibleVersionError, match=f"{VERSION + 1}.*{VERSION}"):
        stream_offset.from_json({**data, "version": VERSION + 1})


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_equal_tables_are_equal_texts_whatever_their_order(order: tuple[int, ...]) -> None:
    table: dict[SplitId, int] = {("c", "u", 7): 1, ("c", "t", 1): 2, ("c", "t", 0): 3}
    ids = list(table)
    shuffled = {ids[place]: table[ids[place]] for place in order}

    assert columns.encode_map(shuffled) == [
        [["c", "t"], [[0, 2]], [3, 2]],
        [["c", "u"], [[7, 1]], [1]],
    ]


@given(st.integers(1, 6), st.integers(1, 6))
def test_a_table_of_at_least_half_of_the_splits_shares_its_layout(first: int, then: int) -> None:
    ids: list[SplitId] = [("c", "t", number) for number in range(6)]
    encode_map = columns.TableEncoder()
    encode_map(dict.fromkeys(ids[:first], 0))

    encode_map(dict.fromkeys(ids[:then], 0))

    assert encode_map._layout.split_ids == ids[: first if 2 * then < first else then]


def test_splits_that_their_source_refuses_are_a_corrupt_table() -> None:
    source, split_id = kafka_source("c"), ("c", "t", 0)
    tables = encode_splits({split_id: source.create_split(split_id, 5, {})})
    without_position = {"positions": columns.encode_map({split_id: None}), "attributes": []}

    assert decode_splits(tables, source)[split_id].position == 5
    with pytest.raises(CorruptDocumentError, match=r"malformed table of splits: .*not a partition"):
        decode_splits(without_position, source)


@pytest.mark.parametrize(("millis", "seconds"), [(0, 0), (1, 1), (1000, 1), (1001, 2), (5500, 6)])
def test_a_part_of_a_second_behind_counts_as_a_whole_one(millis: int, seconds: int) -> None:
    """0 says that everything is read."""
    report = make_report(positions={("c", "t", 0): 1}, metrics={MILLIS_BEHIND: millis})

    assert seconds_behind([report]) == seconds
    assert seconds_behind([report, make_report(positions={("c", "t", 1): 1})]) is None
