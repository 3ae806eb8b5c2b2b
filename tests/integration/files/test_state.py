"""A million files: what is remembered of them."""

import json

import pytest

from balanced_source.connectors.files import Cursor, File, take

pytestmark = [pytest.mark.integration, pytest.mark.thorough]

MEBIBYTE = 1024 * 1024


def test_the_state_of_a_million_files_is_below_a_mebibyte() -> None:
    """Each is taken once, in pages, as fast as an hour's window of them would come.

    The pure half alone.
    """
    cursor, count = Cursor(), 0
    for page in range(250):
        made = [
            File(page * 4_000_000 + n * 1000, f"/data/part-{page:05}-{n:05}.parquet", 7)
            for n in range(4000)
        ]
        found = take(cursor, made, limit=4096, late=3600, ends=False)
        cursor, count = found.cursor, count + len(found.files)

    assert count == 1_000_000
    assert len(json.dumps(cursor.to_json())) < MEBIBYTE
