"""The client library's admin client, which gives the offsets of many partitions as one answer.

The library makes a future for each partition. To make, complete and await these costs more than the
request: 3 of 5 ms for 200 partitions, and a driver asks up to 50 times a second.
"""

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient

EARLIEST: Final = int(OFFSET_BEGINNING)
"""Asks for the first offset of a partition, where a time is expected; as in Kafka's protocol."""

LATEST: Final = int(OFFSET_END)
"""Asks for the offset behind the last record."""


CONNECTING: Final = 10.0
"""Seconds for which a new client tries to connect before anyone asks for something."""


class OffsetsAdmin(AdminClient):
    """See the module.

    Args:
        settings: of librdkafka.
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        super().__init__(settings)
        # For a list of topics a client that is new connects 50 ms later than for this, whose answer
        # no one needs.
        self.describe_cluster(request_timeout=CONNECTING)

    def list_together(
        self, partitions: list[TopicPartition], *, isolation: IsolationLevel, timeout: float
    ) -> Future[Mapping[TopicPartition, Any]]:
        """Ask for offsets.

        Args:
            partitions: the `offset` of each is `EARLIEST`, `LATEST`, or a time in milliseconds: the
                first record from then on is looked for.
            isolation: whether records of open transactions count.
            timeout: seconds.

        Returns:
            What the library has for each partition: offset and time, or a KafkaError. The future
            raises KafkaException if nothing at all could be asked.
        """
        future: Future[Mapping[TopicPartition, Any]] = Future()
        future.set_running_or_notify_cancel()
        # What the library's own method calls below its futures.
        super(AdminClient, self).list_offsets(
            partitions, future, isolation_level_value=isolation.value, request_timeout=timeout
        )
        return future
