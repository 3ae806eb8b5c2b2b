"""Messages as librdkafka's Python binding delivers them."""

from typing import Any

from confluent_kafka import Message


def message(**given: Any) -> Message:
    """Return a message with these fields, which are named as those of `Message` are.

    The others are those of a record.
    """
    record = {
        "key": b"k",
        "value": b"v",
        "topic": "t",
        "partition": 0,
        "offset": 0,
        "timestamp": (1, 1_700_000_000_123),
    }
    return Message(**{**record, **given})
