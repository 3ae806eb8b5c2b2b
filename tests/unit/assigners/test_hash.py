"""`Hash`: Flink's owner function, byte for byte."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balanced_source.assigners import HashAssigner, Placement, hash_owner, java_string_hash, place
from support.placements import placements, shuffled

GOLDEN: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "golden" / "hash_owners.json").read_text()
)
ASSIGNER = HashAssigner()


@pytest.mark.parametrize(
    "row", GOLDEN, ids=lambda row: f"{row['topic']!r:.20}-{row['parallelism']}"
)
def test_owners_are_those_of_a_real_jvm(row: dict[str, Any]) -> None:
    owners = [
        hash_owner(("c", row["topic"], p), row["parallelism"]) for p in range(len(row["owners"]))
    ]

    assert java_string_hash(row["topic"]) == row["java_hash"]
    assert owners == row["owners"]


@given(placements(weighted=False), st.integers(0, 2**32))
def test_owners_depend_on_split_and_parallelism_only(placement: Placement, seed: int) -> None:
    owners = {**placement.owners, **place(ASSIGNER, placement)}

    assert owners == {s: hash_owner(s, placement.parallelism) for s in owners}
    assert place(ASSIGNER, shuffled(placement, seed)) == place(ASSIGNER, placement)


@pytest.mark.parametrize("parallelism", [31, 62, 93])
def test_it_collapses_at_multiples_of_31_and_says_so(parallelism: int) -> None:
    topics = [f"topic-{i}" for i in range(100)]
    used = Counter(hash_owner(("c", topic, 0), parallelism) for topic in topics)

    assert len(used) <= 6, "negative hashes make the second half of these"
    warning = ASSIGNER.warning(parallelism)
    assert warning is not None
    assert warning.reason == "HashCollapses"
    assert "collapses" in warning.message


@pytest.mark.parametrize("parallelism", [1, 30, 32, 61, 63])
def test_elsewhere_there_is_nothing_to_say(parallelism: int) -> None:
    assert ASSIGNER.warning(parallelism) is None
