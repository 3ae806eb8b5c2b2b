"""Ends of former leaderships are written only for the splits that have some."""

from balanced_source.documents import stream_offset
from balanced_source.documents.stream_offset import StreamOffset, TermEnd

A, B = ("c", "t", 0), ("c", "t", 1)
PAST = (TermEnd(3, 5),)


def written(offset: StreamOffset) -> StreamOffset:
    return stream_offset.from_json(stream_offset.to_json(offset))


def test_a_split_without_former_ends_is_left_out() -> None:
    offset = StreamOffset(positions={A: 5, B: 5}, terms={A: 4, B: 4}, term_ends={A: PAST, B: ()})

    assert written(offset).term_ends == {A: PAST}


def test_without_any_the_older_format_is_written() -> None:
    offset = StreamOffset(positions={A: 5}, terms={A: 4}, term_ends={A: ()})

    assert "termEnds" not in stream_offset.to_json(offset)
