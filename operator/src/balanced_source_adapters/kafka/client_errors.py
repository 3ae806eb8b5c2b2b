"""What an admin client of Kafka fails with, as sentences that say what to do."""

import re
import time
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException

from balanced_source.api import SplitId
from balanced_source.connectors.kafka import KafkaSplitId
from balanced_source.connectors.kafka.reasons import KafkaReason
from balanced_source.connectors.kafka.titles import at_servers, titled
from balanced_source.errors import DiscoveryError, RefusedDiscoveryError, TransientDiscoveryError
from balanced_source.names import counted, first_of, split_name
from balanced_source.reasons import Reason
from balanced_source_adapters.kafka.client_statistics import BrokerStatistics, parse
from balanced_source_adapters.kafka.config import without_secrets
from balanced_source_adapters.kafka.offsets import ListedOffsets
from balanced_source_adapters.kafka.property_names import nearest_property

ADDRESSES: Final = (
    "the addresses of its brokers (bootstrapServers; as an option kafka.bootstrap.servers)"
)
"""What messages call them: a query without an operator is given options, and no spec."""

PROPERTIES: Final = "the properties of the client (properties of the cluster; as options kafka.*)"
"""The same."""

_REFUSALS: Final[Mapping[int, tuple[str, str]]] = {
    KafkaError._AUTHENTICATION: (Reason.AUTHENTICATION_FAILED, "check the credentials"),
    KafkaError.SASL_AUTHENTICATION_FAILED: (Reason.AUTHENTICATION_FAILED, "check the credentials"),
    KafkaError._SSL: (Reason.TLS_FAILED, "check security.protocol and the certificates"),
    KafkaError._INVALID_ARG: (Reason.INVALID_PROPERTIES, f"check {PROPERTIES}"),
    KafkaError.TOPIC_AUTHORIZATION_FAILED: (
        Reason.NOT_AUTHORIZED,
        "the user needs Describe and Read on the topics",
    ),
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: (
        Reason.NOT_AUTHORIZED,
        "the user needs Describe on the cluster",
    ),
    KafkaError.GROUP_AUTHORIZATION_FAILED: (
        Reason.NOT_AUTHORIZED,
        "the user needs Describe and Read on the group",
    ),
}
"""Errors that someone has to mend: code → reason of the condition, and what to do."""

_UNREACHABLE: Final = frozenset(
    {KafkaError._TRANSPORT, KafkaError._TIMED_OUT, KafkaError._ALL_BROKERS_DOWN}
)
"""Errors of a cluster that says nothing at all."""

_RECENT: Final = 30.0
"""Seconds for which the complaint of a connection explains a request that failed."""

_PROTOCOL: Final = (
    ". If the port expects TLS or SASL, set security.protocol (as an option"
    " kafka.security.protocol)"
)
"""A broker closes a connection that speaks another protocol, and says nothing."""

_PASSING: Final = (
    (re.compile(r"after \d+ms (?=in state )"), ""),
    (re.compile(r", \d+ identical error\(s\) suppressed"), ""),
    (re.compile(r"(?<=Connect to )(ipv4#127\.0\.0\.1|ipv6#\[::1\])(?=:)"), "localhost"),
)
"""Parts of librdkafka's texts that differ from one attempt to the next, and what stands for them.
Addresses of localhost are tried in turn."""

_UNKNOWN: Final = re.compile(r'No such configuration property: "([^"]+)"')

_NO_MECHANISM: Final = re.compile(r"No provider for SASL mechanism ([\w-]+)")

_HANDSHAKE: Final = re.compile(r"handshake failed: .*supported mechanisms:([^(]*)")
"""Of librdkafka: a broker that has no such mechanism, or a port without SASL, which names none."""

_SHOWN: Final = 5
"""Topics that a message names."""


def lasting_text(text: str) -> str:
    """Return a text of librdkafka without counts and times.

    The same failure has the same text: a problem whose text changes is shown as a new one.
    """
    for pattern, instead in _PASSING:
        text = pattern.sub(instead, text)
    return text


class ClientNotes:
    """What a client has told in passing.

    It knows no client, so that no circle keeps an unused one alive.
    """

    def __init__(self) -> None:
        self.complaint: tuple[KafkaError, float] | None = None
        self.statistics: BrokerStatistics | None = None

    def on_error(self, error: KafkaError) -> None:
        """Take note of what a connection complains about."""
        if error.code() != KafkaError._ALL_BROKERS_DOWN:
            self.complaint = (error, time.monotonic())

    def on_statistics(self, text: str) -> None:
        """Take over newer statistics."""
        self.statistics = parse(text)


class ClientErrors:
    """Makes errors of what one admin client has raised or answered.

    It does not know the `ClusterClient`, so that no circle keeps an unused one alive.

    Args:
        cluster: name.
        config: of librdkafka; its secrets appear in no text.
        notes: what the client has told in passing.
        title: what messages call the cluster, if not by its name.

    Attributes:
        title: what messages call the cluster.
        admin: the client of the library; None until it is made.
    """

    def __init__(
        self, cluster: str, config: Mapping[str, Any], notes: ClientNotes, *, title: str = ""
    ) -> None:
        self._cluster = cluster
        self.title = titled(cluster, title)
        self._config = config
        self._notes = notes
        self.admin: Any = None

    def unanswered(self, listed: ListedOffsets) -> DiscoveryError:
        """The error for partitions without an answer; it has the answers of the others."""
        error = next(
            (e for e in listed.errors.values() if e.code() in _REFUSALS),
            next(iter(listed.errors.values())),
        )
        answers = {s: answer.offset for s, answer in listed.answers.items()}
        if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            refused = {
                KafkaSplitId.of(s).topic
                for s, e in listed.errors.items()
                if e.code() == error.code()
            }
            return RefusedDiscoveryError(
                self.refused_topics(refused, error),
                scope=self._cluster,
                reason=Reason.NOT_AUTHORIZED,
                answers=answers,
            )
        if not answers and error.code() in _UNREACHABLE:
            return self.translated(KafkaException(error))
        return self._refusal(error, answers) or unanswered(
            self._cluster,
            sorted(listed.errors),
            title=self.title,
            why=self._text(error),
            answers=answers,
        )

    def translated(self, raised: KafkaException) -> DiscoveryError:
        """The error that says most: a request only times out, while the connection knows why."""
        error: KafkaError = raised.args[0]
        if self.admin is not None:
            self.admin.poll(0)  # delivers what the connections complained about
        complaint, at = self._notes.complaint or (None, 0.0)
        # An old complaint would explain a new failure wrongly.
        if complaint is not None and time.monotonic() - at > _RECENT:
            complaint = None
        for candidate in (error, complaint):
            # A request only times out; what its connection complains about, someone may mend.
            if candidate is not None and (refusal := self._refusal(candidate)) is not None:
                return refusal
        why = self._text(complaint or error)
        hint = _PROTOCOL if _may_speak_another(error, complaint) else ""
        return TransientDiscoveryError(
            f"{self.title}{self._at()} does not answer ({why}): check {ADDRESSES} and"
            f" the network{hint}; trying again",
            scope=self._cluster,
            reason=Reason.CLUSTER_UNREACHABLE,
        )

    def _at(self) -> str:
        """Where the client looks for the cluster: what people mistype."""
        where = at_servers(str(self._config.get("bootstrap.servers", "")))
        return "" if self.title.endswith(where) else where

    def _refusal(
        self, error: KafkaError, answers: Mapping[SplitId, int] = MappingProxyType({})
    ) -> RefusedDiscoveryError | None:
        if (refusal := _REFUSALS.get(error.code())) is None:
            return None
        reason, advice = refusal
        advice = _of_handshake(error) or advice
        why = _mechanism(error) or f"{self._text(error)}{_suggestion(error)}: {advice}"
        message = f"{self.title}: {why}"
        return RefusedDiscoveryError(message, scope=self._cluster, reason=reason, answers=answers)

    def refused_topics(self, topics: Collection[str], error: KafkaError) -> str:
        """Return the message about topics that the cluster refuses."""
        return (
            f"{self.title} refuses topic {first_of(sorted(topics), _SHOWN)}"
            f" ({self._text(error)}): grant the user Describe and Read on it, or take it out of the"
            " subscription. Other topics are read meanwhile"
        )

    def _text(self, error: KafkaError) -> str:
        return without_secrets(lasting_text(error.str()), self._config)


def _may_speak_another(error: KafkaError, complaint: KafkaError | None) -> bool:
    """Whether the port may expect another protocol.

    Brokers then close connections that were made, about which the client library complains little.
    """
    if complaint is None:
        return error.code() in (KafkaError._TRANSPORT, KafkaError._TIMED_OUT)
    return complaint.code() == KafkaError._TRANSPORT and "in state CONNECT" not in complaint.str()


def _mechanism(error: KafkaError) -> str:
    """The library would have people compile it again, because its default is Kerberos."""
    if (missing := _NO_MECHANISM.search(error.str())) is None:
        return ""
    kerberos = " (Kerberos), the default where none is set" if missing[1] == "GSSAPI" else ""
    return (
        f"the client has no SASL mechanism {missing[1]}{kerberos}. Set sasl.mechanism (as an option"
        " kafka.sasl.mechanism) to PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER"
    )


def _of_handshake(error: KafkaError) -> str:
    """Return what to do about a broker without the mechanism; empty for any other failure."""
    if (found := _HANDSHAKE.search(error.str())) is None:
        return ""
    if not found[1].strip():
        return (
            "the port does not expect SASL. Use the port for SASL, or set security.protocol (as an"
            " option kafka.security.protocol) to PLAINTEXT or SSL"
        )
    return "set sasl.mechanism (as an option kafka.sasl.mechanism) to one that the broker supports"


def _suggestion(error: KafkaError) -> str:
    unknown = _UNKNOWN.search(error.str())
    near = nearest_property(unknown[1]) if unknown else None
    return f" (did you mean {near}?)" if near else ""


def unanswered(
    cluster: str,
    split_ids: Sequence[SplitId],
    *,
    title: str = "",
    why: str = "",
    answers: Mapping[SplitId, int] = MappingProxyType({}),
) -> TransientDiscoveryError:
    """Return the error for partitions that exist and do not say where they begin or end."""
    first = split_name(split_ids[0][1:])
    because = f" ({why})" if why else ""
    return TransientDiscoveryError(
        f"{titled(cluster, title)}: {counted(len(split_ids), 'partition')}, e.g. {first}, without"
        f" a leader that answers{because}: check that all brokers are up; trying again",
        scope=cluster,
        reason=KafkaReason.NO_LEADER,
        answers=answers,
    )
