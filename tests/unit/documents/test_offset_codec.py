"""The codec of stream offsets remembers what it wrote and read, and nothing else."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balanced_source.api import Json, SplitId
from balanced_source.documents import columns, stream_offset
from balanced_source.documents.offset_codec import REMEMBERED, OffsetCodec
from balanced_source.documents.stream_offset import StreamOffset, TermEnd
from balanced_source.errors import CorruptDocumentError

SPLITS: list[SplitId] = [("c", "t", p) for p in range(4)]

some_positions = st.dictionaries(
    st.tuples(st.just("c"), st.sampled_from("tu"), st.integers(0, 9)), st.integers(0, 99)
)


def offset(position: int, **changes: Any) -> StreamOffset:
    return StreamOffset(
        epoch=3,
        parallelism=2,
        readers=(0, 1),
        owners={s: int(s[2]) % 2 for s in SPLITS},
        positions=dict.fromkeys(SPLITS, position),
        starts=dict.fromkeys(SPLITS[:1], 0),
        attributes={s: {"id": "T"} for s in SPLITS},
        terms=dict.fromkeys(SPLITS, 7),
        **changes,
    )


def through_spark(data: Mapping[str, Any]) -> dict[str, Any]:
    """What Spark passes after it has logged an offset."""
    found: dict[str, Any] = json.loads(json.dumps(data))
    return found


class Encodings:
    """Counts the tables that are encoded."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tables: list[list[Any]] = []
        encode = columns.TableLayout.encode

        def counted(layout: columns.TableLayout, values: list[Any]) -> list[Json]:
            self.tables.append(values)
            return encode(layout, values)

        monkeypatch.setattr(columns.TableLayout, "encode", counted)


@pytest.mark.parametrize(
    "written",
    [
        StreamOffset(),
        offset(5),
        offset(5, source="ns/orders", closings=2, max_records_per_reader=10),
        offset(5, term_ends={SPLITS[0]: (TermEnd(term=6, end=3),)}),
    ],
)
def test_what_is_remembered_is_what_decoding_gives(written: StreamOffset) -> None:
    codec = OffsetCodec()

    data = codec.encode(written)

    assert data == stream_offset.to_json(written)
    assert codec.decode(through_spark(data)) == stream_offset.from_json(through_spark(data))


def test_an_offset_of_this_process_is_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    codec, written = OffsetCodec(), offset(5)
    data = codec.encode(written)
    monkeypatch.setattr(stream_offset, "from_json", lambda _: pytest.fail("decoded"))

    assert codec.decode(through_spark(data)) is written


def test_an_offset_of_a_former_process_is_decoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    codec, data = OffsetCodec(), through_spark(stream_offset.to_json(offset(5)))
    first = codec.decode(data)
    monkeypatch.setattr(stream_offset, "from_json", lambda _: pytest.fail("decoded"))

    assert codec.decode(through_spark(data)) is first


def test_an_offset_that_differs_anywhere_is_decoded() -> None:
    codec = OffsetCodec()
    data = through_spark(codec.encode(offset(5)))
    data["positions"][0][2][3] += 1

    found = codec.decode(data)

    assert found.positions[SPLITS[3]] == 6


def test_changes_of_what_was_returned_are_not_remembered() -> None:
    codec, written = OffsetCodec(), offset(5)
    data = codec.encode(written)
    before = through_spark(data)
    data["epoch"] = 9

    assert codec.decode(before) is written
    assert codec.decode(data).epoch == 9


def test_a_whole_micro_batch_and_the_next_end_are_remembered() -> None:
    codec = OffsetCodec()
    written = [offset(number) for number in range(REMEMBERED)]
    logged = [through_spark(codec.encode(one)) for one in written]

    assert [codec.decode(data) for data in logged] == written
    assert all(codec.decode(data) is one for data, one in zip(logged, written, strict=True))


def test_only_the_newest_offsets_are_remembered() -> None:
    codec, oldest = OffsetCodec(), offset(0)
    data = codec.encode(oldest)
    for number in range(REMEMBERED):
        codec.encode(offset(number + 1))

    found = codec.decode(through_spark(data))

    assert found == oldest
    assert found is not oldest


def test_tables_that_stay_are_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    codec, encodings = OffsetCodec(), Encodings(monkeypatch)
    first = offset(5)
    codec.encode(first)
    encodings.tables.clear()

    second = replace(first, positions=dict.fromkeys(SPLITS, 6))
    data = codec.encode(second)

    assert encodings.tables == [list(second.positions.values())]
    assert data == stream_offset.to_json(second)


def test_the_order_of_splits_is_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    codec, first = OffsetCodec(), offset(5)
    codec.encode(first)
    monkeypatch.setattr(columns, "TableLayout", lambda _: pytest.fail("sorted again"))

    data = codec.encode(replace(first, positions=dict.fromkeys(SPLITS, 6)))

    assert data["positions"] == [[["c", "t"], [[0, 4]], [6, 6, 6, 6]]]


@given(st.lists(some_positions, max_size=4))
def test_positions_of_other_splits_are_written_alike(tables: list[dict[SplitId, int]]) -> None:
    codec = OffsetCodec()
    for positions in tables:
        written = replace(offset(5), positions=positions)
        assert codec.encode(written) == stream_offset.to_json(written)


def test_a_malformed_offset_is_refused_and_not_remembered() -> None:
    codec = OffsetCodec()
    for _ in range(2):
        with pytest.raises(CorruptDocumentError):
            codec.decode({"version": 3, "epoch": 1})
