"""The client library's own method for offsets, which it does not document."""

from typing import Any

import pytest
from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from balanced_source_adapters.kafka.offsets_admin import CONNECTING, LATEST, OffsetsAdmin


def test_the_library_takes_the_request_and_says_that_no_broker_answers() -> None:
    """A release of the library with another method fails here."""
    admin = OffsetsAdmin({"bootstrap.servers": "127.0.0.1:1", "log_level": 0})

    future = admin.list_together(
        [TopicPartition("t", 0, LATEST)], isolation=IsolationLevel.READ_COMMITTED, timeout=0.1
    )

    error = future.exception(60.0)
    assert isinstance(error, KafkaException)
    assert error.args[0].code() == KafkaError._TIMED_OUT


def test_a_new_client_connects_before_it_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(AdminClient, "describe_cluster", lambda _, **how: asked.append(how))

    OffsetsAdmin({"bootstrap.servers": "127.0.0.1:1", "log_level": 0})

    assert asked == [{"request_timeout": CONNECTING}]
