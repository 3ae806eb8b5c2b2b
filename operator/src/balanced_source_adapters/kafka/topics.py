"""Asks the controller of a cluster what topics are.

They are described by the controller alone, and for some seconds brokers name one that has just
died. The client would believe them forever: it has to ask who the controller is.
"""

from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AclOperation

from balanced_source.errors import RefusedDiscoveryError, TransientDiscoveryError
from balanced_source.names import shown
from balanced_source.reasons import Reason
from balanced_source_adapters.kafka.client_errors import ADDRESSES, ClientErrors
from balanced_source_adapters.kafka.offsets import NOT_THERE
from balanced_source_adapters.kafka.topic_ids import take_topic_id

DESCRIBE_TIMEOUT: Final = 3.0
"""Seconds for a description of topics by the broker that was named as controller, before another
one is looked for."""


@dataclass(frozen=True, slots=True)
class Topic:
    """What a cluster says of a topic.

    Its partitions, and the id that tells it from a former topic of that name.
    """

    partitions: frozenset[int]
    topic_id: str


class TopicsRefusedError(RefusedDiscoveryError):
    """The cluster refuses some topics and describes the others.

    Attributes:
        found: the topics that were described.
        refused: names of the topics that were refused.
    """

    def __init__(
        self, message: str, *, scope: str, found: Mapping[str, Topic], refused: frozenset[str]
    ) -> None:
        super().__init__(message, scope=scope, reason=Reason.NOT_AUTHORIZED)
        self.found = found
        self.refused = refused


class TopicRequests:
    """Requests of one admin client. Thread-safe.

    Args:
        admin: of the client library.
        cluster: name, for errors.
        timeout: seconds for one request.
        errors: of the client.
    """

    def __init__(self, admin: Any, cluster: str, *, timeout: float, errors: ClientErrors) -> None:
        self._admin = admin
        self._cluster = cluster
        self._timeout = timeout
        self._errors = errors

    def ask(
        self, names: Collection[str], *, must_be_readable: bool = False
    ) -> Callable[[], dict[str, Topic]]:
        """Ask for topics.

        Args:
            names: of topics, at least one.
            must_be_readable: whether topics count as refused that the user may describe and not
                read.

        Returns:
            What waits for the answer: the topics that exist, as they are after this call.

            It raises DiscoveryError if the cluster did not answer, or refused, and a
            TopicsRefusedError with the other topics if only some are refused.
        """
        futures = self._described(names, DESCRIBE_TIMEOUT, must_be_readable=must_be_readable)

        def answer() -> dict[str, Topic]:
            try:
                return self._topics_of(futures, must_be_readable=must_be_readable)
            except TransientDiscoveryError:
                # Brokers name a controller for seconds after its death, and the client believes
                # them.
                self._refresh()
                again = self._described(names, self._timeout, must_be_readable=must_be_readable)
                return self._topics_of(again, must_be_readable=must_be_readable)

        return answer

    def _refresh(self) -> None:
        """Have the client look for the brokers, and so for the controller, again."""
        try:
            self._admin.list_topics(None, timeout=self._timeout)
        except KafkaException as error:
            raise self._errors.translated(error) from error

    def _described(
        self, names: Collection[str], timeout: float, *, must_be_readable: bool
    ) -> Mapping[str, Future[Any]]:
        futures: Mapping[str, Future[Any]] = self._admin.describe_topics(
            TopicCollection(list(names)),
            request_timeout=timeout,
            include_authorized_operations=must_be_readable,
        )
        return futures

    def _topics_of(
        self, futures: Mapping[str, Future[Any]], *, must_be_readable: bool
    ) -> dict[str, Topic]:
        found: dict[str, Topic] = {}
        refused: dict[str, KafkaError] = {}
        for name, future in futures.items():
            try:
                described = future.result()
                if must_be_readable and not _is_readable(described):
                    refused[name] = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
                else:
                    numbers = frozenset(p.id for p in described.partitions)
                    found[name] = Topic(self._checked(name, numbers), take_topic_id(described))
            except KafkaException as error:
                code = error.args[0].code()
                if code == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                    refused[name] = error.args[0]
                elif code not in NOT_THERE:
                    raise self._errors.translated(error) from error
        if refused:
            message = self._errors.refused_topics(refused, next(iter(refused.values())))
            raise TopicsRefusedError(
                message, scope=self._cluster, found=found, refused=frozenset(refused)
            )
        return found

    def _checked(self, topic: str, numbers: frozenset[int]) -> frozenset[int]:
        """The client library cannot handle negative numbers: it uses them for "no partition"."""
        if numbers and min(numbers) < 0:
            raise TransientDiscoveryError(
                f"{self._errors.title} lists partition {min(numbers)} of topic {shown(topic)},"
                f" which cannot exist. Check that {ADDRESSES} are those of Kafka brokers of a"
                " supported version; trying again",
                scope=self._cluster,
            )
        return numbers


def _is_readable(described: Any) -> bool:
    """Whether the user may read a topic.

    Brokers that do not tell leave it to the tasks to find out.
    """
    allowed = getattr(described, "authorized_operations", None)
    return not allowed or AclOperation.READ in allowed or AclOperation.ALL in allowed
