"""Messages as librdkafka's Python binding shows them."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(kw_only=True)
class FakeMessage:
    """A record; accessors are methods, as in confluent-kafka."""

    key: Any = b"k"
    value: Any = b"v"
    topic: Any = "t"
    partition: Any = 0
    offset: Any = 0
    timestamp: Any = (1, 1_700_000_000_123)
    headers: Any = field(default=None)

    def __post_init__(self) -> None:
        for name in ("key", "value", "topic", "partition", "offset", "timestamp", "headers"):
            given = getattr(self, name)
            setattr(self, name, lambda given=given: given)
