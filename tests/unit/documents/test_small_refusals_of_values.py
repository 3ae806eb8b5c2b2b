"""Small refusals and answers of the pure library, each by itself."""

import bz2
from typing import Any

import pytest

from balanced_source.connectors.kafka import KafkaPartitionSplit
from balanced_source.connectors.kinesis.enumerator import _awaited
from balanced_source.coordinator.phase import source_phase
from balanced_source.coordinator.source_groups import _is_news
from balanced_source.documents import storage
from balanced_source.errors import (
    ContractViolationError,
    RefusedDiscoveryError,
    TransientDiscoveryError,
)
from balanced_source.lifecycles import SourcePhase


def test_a_source_that_was_read_to_its_end_is_finished() -> None:
    state: Any = None
    assert source_phase(state, is_finished=True) is SourcePhase.FINISHED


def test_no_step_is_no_news_even_without_any_drift() -> None:
    assert [_is_news(5, wanted, 0) for wanted in (4, 5, 6)] == [True, False, True]


def test_a_compressed_file_without_its_end_is_incomplete() -> None:
    whole = bz2.compress(b"a document" * 100)
    assert storage._bounded(whole) == b"a document" * 100
    with pytest.raises(EOFError, match="its end is missing"):
        storage._bounded(whole[:-4])


def test_a_partition_is_at_an_offset() -> None:
    split = KafkaPartitionSplit(cluster="c", topic="t", partition=0, offset=5)
    assert split.at(7).offset == 7
    position: Any = "seven"
    with pytest.raises(ContractViolationError, match="'seven' is no offset"):
        split.at(position)


def test_a_failure_that_passes_is_told_as_it_is() -> None:
    error = TransientDiscoveryError("no answer", scope="s")
    assert _awaited(error) is error
    refused = _awaited(RefusedDiscoveryError("no right", scope="s"))
    assert isinstance(refused, RefusedDiscoveryError)
    assert (str(refused), refused.scope) == ("no right", "s")
