"""The same failure of a cluster has the same text at each attempt, so that it is shown once."""

import pytest
from confluent_kafka import KafkaError, KafkaException

from balanced_source_adapters.kafka.client_errors import ClientErrors, ClientNotes

REFUSED = "failed: Connection refused (after 0ms in state CONNECT"


@pytest.mark.parametrize(
    ("first", "later"),
    [
        (f"{REFUSED})", f"{REFUSED}, 528 identical error(s) suppressed)"),
        (f"{REFUSED})", f"{REFUSED.replace('0ms', '12ms')})"),
        (f"Connect to ipv4#127.0.0.1:9092 {REFUSED})", f"Connect to ipv6#[::1]:9092 {REFUSED})"),
    ],
)
def test_counts_times_and_addresses_of_localhost_are_left_out(first: str, later: str) -> None:
    notes, raised = ClientNotes(), []
    for text in (first, later):
        notes.on_error(KafkaError(KafkaError._TRANSPORT, f"localhost:9092/bootstrap: {text}"))
        timed_out = KafkaException(KafkaError(KafkaError._TIMED_OUT, "timed out"))
        raised.append(str(ClientErrors("main", {}, notes).translated(timed_out)))

    assert raised[0] == raised[1]
    assert "failed: Connection refused (in state CONNECT)" in raised[0]
