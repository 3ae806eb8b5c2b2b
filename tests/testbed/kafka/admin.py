"""What tests do to a cluster: topics, partitions, records and access rights."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from confluent_kafka import (
    ElectionType,
    IsolationLevel,
    KafkaException,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourcePatternType,
    ResourceType,
)

from testbed.waiting import wait_until

_TIMEOUT = 30.0


class KafkaAdmin:
    """Helpers on the admin client; every call waits until the cluster shows the change.

    Args:
        bootstrap: `host:port,…` of the open listener.
    """

    def __init__(self, bootstrap: str) -> None:
        # the client prints every refused connection of an outage test otherwise
        self._config: dict[str, str | int | float | bool] = {
            "bootstrap.servers": bootstrap,
            "log_level": 0,
        }
        self.client: Any = AdminClient(self._config)

    def brokers(self) -> int:
        """How many brokers the cluster shows; 0 while none answers."""
        try:
            return len(self.client.list_topics(timeout=1).brokers)
        except KafkaException:
            return 0

    def create_topic(
        self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None
    ) -> None:
        """Create one topic."""
        self.create_topics({name: partitions}, config)

    def create_topics(
        self, partitions: Mapping[str, int], config: Mapping[str, str] | None = None
    ) -> None:
        """Create topics with their numbers of partitions and the brokers' default of replicas."""
        wanted = [
            NewTopic(name, num_partitions=count, config=dict(config or {}))
            for name, count in partitions.items()
        ]
        self._done(self.client.create_topics(wanted))
        self._wait_for_partitions(partitions)

    def place_topic(
        self, name: str, replicas: Sequence[Sequence[int]], config: Mapping[str, str] | None = None
    ) -> None:
        """Create a topic with the brokers of each partition; the first one of each leads."""
        placed = [list(brokers) for brokers in replicas]
        topic = NewTopic(
            name, num_partitions=len(placed), replica_assignment=placed, config=dict(config or {})
        )
        self._done(self.client.create_topics([topic]))
        self._wait_for_partitions({name: len(placed)})

    def replicas(self, topic: str) -> dict[int, list[int]]:
        """Return the brokers of each partition."""
        partitions = self.client.list_topics(topic, timeout=_TIMEOUT).topics[topic].partitions
        return {number: list(partition.replicas) for number, partition in partitions.items()}

    def add_partitions(self, topic: str, total: int) -> None:
        """Grow a topic to `total` partitions."""
        self._done(self.client.create_partitions([NewPartitions(topic, total)]))
        self._wait_for_partitions({topic: total})

    def delete_topic(self, *names: str) -> None:
        """Delete topics and wait until they are gone from the metadata."""
        self._done(self.client.delete_topics(list(names)))
        gone = set(names)
        wait_until(
            lambda: not gone & self.client.list_topics(timeout=_TIMEOUT).topics.keys(),
            _TIMEOUT,
            f"topics {sorted(gone)} to be gone",
        )

    def delete_records(self, topic: str, before: Mapping[int, int]) -> None:
        """Delete the records of each partition that lie before an offset, as retention would."""
        positions = [TopicPartition(topic, number, offset) for number, offset in before.items()]
        self._done(self.client.delete_records(positions))

    def set_config(self, topic: str, config: Mapping[str, str]) -> None:
        """Change settings of a topic."""
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
            for name, value in config.items()
        ]
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=entries)
        self._done(self.client.incremental_alter_configs([resource]))

    def leaders(self, topic: str) -> set[int]:
        """The nodes that lead partitions of a topic."""
        partitions = self.client.list_topics(topic, timeout=_TIMEOUT).topics[topic].partitions
        return {partition.leader for partition in partitions.values()}

    def in_sync(self, topic: str) -> set[int]:
        """The nodes that are in sync for any partition of a topic."""
        partitions = self.client.list_topics(topic, timeout=_TIMEOUT).topics[topic].partitions
        return set().union(*(partition.isrs for partition in partitions.values()))

    def topic_id(self, topic: str) -> str:
        """What tells a topic from a former one with the same name."""
        futures = self.client.describe_topics(TopicCollection([topic]), request_timeout=_TIMEOUT)
        return str(futures[topic].result(timeout=_TIMEOUT).topic_id)

    def prefer_leaders(self, topic: str) -> None:
        """Let the first replica of each partition lead; not an error where it does already."""
        partitions = self.client.list_topics(topic, timeout=_TIMEOUT).topics[topic].partitions
        wanted = [TopicPartition(topic, number) for number in partitions]
        self.client.elect_leaders(ElectionType.PREFERRED, wanted).result(timeout=_TIMEOUT)

    def offsets(self, topic: str) -> dict[int, tuple[int, int]]:
        """First and next offset of each partition."""
        partitions = self.client.list_topics(topic, timeout=_TIMEOUT).topics[topic].partitions
        first, last = (
            self._list_offsets(topic, partitions, spec)
            for spec in (OffsetSpec.earliest(), OffsetSpec.latest())
        )
        return {number: (first[number], last[number]) for number in sorted(partitions)}

    def stable_ends(self, topic: str) -> dict[int, int]:
        """Offset up to which committed records can be read, for each partition.

        It stays behind the next offset while a transaction is open.
        """
        partitions = self.client.list_topics(topic, timeout=_TIMEOUT).topics[topic].partitions
        return self._list_offsets(
            topic, partitions, OffsetSpec.latest(), isolation_level=IsolationLevel.READ_COMMITTED
        )

    def produce(self, topic: str, values: Iterable[bytes], partition: int = -1) -> int:
        """Write records and wait until all are acknowledged; returns how many.

        Args:
            topic: where to.
            values: of the records, which have no keys.
            partition: all go there; spread over all partitions by default.

        Raises:
            KafkaException: a record was refused.
        """
        failures: list[Any] = []
        # a partition for each record, not for each batch
        producer = Producer(self._config | {"sticky.partitioning.linger.ms": 0})
        count = 0
        for count, value in enumerate(values, start=1):  # noqa: B007 - the last one counts
            producer.produce(
                topic,
                value,
                partition=partition,
                on_delivery=lambda error, _: failures.append(error) if error else None,
            )
            producer.poll(0)
        if left := producer.flush(_TIMEOUT):
            raise KafkaException(f"{left} records were not acknowledged")
        if failures:
            raise KafkaException(failures[0])
        return count

    def allow(
        self, user: str, resource: ResourceType, name: str, *operations: AclOperation
    ) -> None:
        """Let a user do something with a resource, on a cluster with access control."""
        rules = [
            AclBinding(
                resource,
                name,
                ResourcePatternType.LITERAL,
                f"User:{user}",
                "*",
                operation,
                AclPermissionType.ALLOW,
            )
            for operation in operations
        ]
        self._done(self.client.create_acls(rules))

    def _list_offsets(
        self, topic: str, partitions: Iterable[int], spec: Any, **options: Any
    ) -> dict[int, int]:
        wanted = {TopicPartition(topic, number): spec for number in partitions}

        def answered() -> dict[TopicPartition, Any]:
            futures = self.client.list_offsets(wanted, request_timeout=_TIMEOUT, **options)
            return {key: future.result() for key, future in futures.items()}

        # a leader that is shown may still have to learn that it is one
        answers = (
            wait_until(answered, _TIMEOUT, f"offsets of {topic}", ignoring=(KafkaException,))
            if wanted
            else {}
        )
        return {key.partition: answer.offset for key, answer in answers.items()}

    def _wait_for_partitions(self, partitions: Mapping[str, int]) -> None:
        def visible() -> bool:
            topics = self.client.list_topics(timeout=_TIMEOUT).topics
            return all(
                name in topics and _led(topics[name].partitions) >= count
                for name, count in partitions.items()
            )

        wait_until(visible, _TIMEOUT, "partitions to have leaders")

    @staticmethod
    def _done(futures: Mapping[Any, Any]) -> None:
        for future in futures.values():
            future.result(timeout=_TIMEOUT)


def _led(partitions: Mapping[int, Any]) -> int:
    return sum(partition.leader >= 0 for partition in partitions.values())
