"""The id of a partition with names for its places: nothing that sees it as a tuple can tell."""

import json
import pickle

import pytest

from balanced_source.api import SplitId
from balanced_source.connectors.kafka import KafkaSplitId
from balanced_source.documents import columns

PLAIN: list[SplitId] = [("c", "t", 0), ("b", "t", 1), ("c", "s", 10), ("c", "s", 9)]
NAMED = [KafkaSplitId.of(split_id) for split_id in PLAIN]


def test_places_have_names() -> None:
    found = KafkaSplitId.of(("c", "t", 3))

    assert (found.cluster, found.topic, found.partition) == ("c", "t", 3)
    assert str(found) == "c/t/3"


def test_it_is_the_plain_tuple() -> None:
    """Documents are read into plain tuples, and both meet in the same tables."""
    assert NAMED == PLAIN
    assert set(NAMED) == set(PLAIN), "equal hashes"
    assert sorted(NAMED) == sorted(PLAIN)
    assert dict.fromkeys(NAMED, 1)["c", "t", 0] == 1


def test_documents_hold_the_same_bytes() -> None:
    assert json.dumps(NAMED) == json.dumps(PLAIN)
    assert columns.encode_ids(NAMED) == columns.encode_ids(PLAIN)
    assert columns.encode_map(dict.fromkeys(NAMED, 1)) == columns.encode_map(
        dict.fromkeys(PLAIN, 1)
    )


def test_a_split_id_can_be_pickled() -> None:
    assert pickle.loads(pickle.dumps(NAMED)) == NAMED  # noqa: S301 - our own bytes


def test_an_id_of_another_length_is_refused() -> None:
    with pytest.raises(TypeError):
        KafkaSplitId.of(("numbers", 3))
