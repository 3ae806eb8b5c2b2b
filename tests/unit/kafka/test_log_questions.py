"""How brokers are asked where a log was cut, over a stand-in for the client library."""

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from balanced_source.api import SplitId
from balanced_source.documents.stream_offset import TermEnd
from balanced_source.host.ends import Mark
from balanced_source.host.log_check import Found
from balanced_source_adapters.kafka import log_check as module
from balanced_source_adapters.kafka.log_check import check_logs

A: SplitId = ("c", "t", 0)
MARK = Mark(position=5, term=3)
END = KafkaError(KafkaError._PARTITION_EOF)


def cut_at(offset: int, term: int) -> KafkaError:
    words = f"log truncation: broker end offset is {offset} (offset leader epoch {term})"
    return KafkaError(KafkaError._AUTO_OFFSET_RESET, words)


class Library:
    """Makes consumers that get these errors, one for each question."""

    def __init__(self, *errors: KafkaError | None, high: int | None = None) -> None:
        self.errors = list(errors)
        self.high = high
        self.made: list[Consumer] = []

    def __call__(self, config: dict[str, Any]) -> "Consumer":
        self.made.append(Consumer(self))
        return self.made[-1]


class Consumer:
    """Gets one message about the partition that it is assigned."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self.assigned: list[tuple[int, int | None]] = []
        self.is_closed = False

    def assign(self, partitions: list[Any]) -> None:
        self.assigned = [(p.offset, p.leader_epoch) for p in partitions]

    def consume(self, count: int, timeout: float) -> list[Any]:
        if not self._library.errors:
            return []
        error = self._library.errors.pop(0)
        return [SimpleNamespace(topic=lambda: "t", partition=lambda: 0, error=lambda: error)]

    def incremental_unassign(self, partitions: list[Any]) -> None:
        pass

    def get_watermark_offsets(self, partition: Any, timeout: float) -> tuple[int, int]:
        if self._library.high is None:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        return 0, self._library.high

    def close(self) -> None:
        self.is_closed = True


def asked(
    monkeypatch: pytest.MonkeyPatch, library: Library, mark: Mark = MARK
) -> dict[SplitId, Found]:
    monkeypatch.setattr(module, "Consumer", library)
    found = check_logs({}, {A: (mark, 4)}, timeout=0.2)
    assert library.made
    assert all(consumer.is_closed for consumer in library.made), "each one has connections"
    return found


def test_the_end_of_a_leadership_says_where_the_log_was_cut(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    library = Library(cut_at(3, 3))

    assert asked(monkeypatch, library) == {A: Found(3, (TermEnd(3, 3),))}
    assert library.made[0].assigned == [(module._FAR, 3)]


def test_each_question_has_a_consumer_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    mark = Mark(position=6, term=3, past=(TermEnd(1, 4),))
    library = Library(cut_at(5, 2), cut_at(2, 1))

    assert asked(monkeypatch, library, mark)[A].cut == 2
    assert [consumer.assigned for consumer in library.made] == [
        [(module._FAR, 3)],
        [(module._FAR, 1)],
    ]


@pytest.mark.parametrize("answer", [None, END])
def test_a_position_that_can_be_read_is_no_cut(
    monkeypatch: pytest.MonkeyPatch, answer: KafkaError | None
) -> None:
    assert asked(monkeypatch, Library(answer)) == {A: Found(None)}


@pytest.mark.parametrize(("high", "cut"), [(9, None), (5, None), (3, 3)])
def test_of_a_broker_without_leader_epochs_only_the_end_is_compared(
    monkeypatch: pytest.MonkeyPatch, high: int, cut: int | None
) -> None:
    other_words = KafkaError(KafkaError.OFFSET_OUT_OF_RANGE, "out of range")

    assert asked(monkeypatch, Library(other_words, high=high)) == {A: Found(cut)}


@pytest.mark.parametrize("error", [KafkaError(KafkaError._TRANSPORT), None])
def test_a_partition_that_does_not_answer_is_left_out(
    monkeypatch: pytest.MonkeyPatch, error: KafkaError | None
) -> None:
    assert asked(monkeypatch, Library(*([error] if error else []))) == {}


def test_an_error_that_passes_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library(KafkaError(KafkaError._TRANSPORT), cut_at(9, 3))

    assert asked(monkeypatch, library)[A].cut is None
    assert len(library.made) == 1
