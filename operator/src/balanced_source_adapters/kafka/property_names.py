"""Names of properties that a message can suggest: the client library does not list its own."""

from typing import Final

from balanced_source_adapters.suggestions import nearest

NAMES: Final = frozenset(
    {
        "broker.address.family",
        "broker.address.ttl",
        "check.crcs",
        "client.dns.lookup",
        "client.rack",
        "connections.max.idle.ms",
        "debug",
        "enable.metrics.push",
        "enable.sasl.oauthbearer.unsecure.jwt",
        "enable.ssl.certificate.verification",
        "fetch.error.backoff.ms",
        "fetch.max.bytes",
        "fetch.message.max.bytes",
        "fetch.min.bytes",
        "fetch.queue.backoff.ms",
        "fetch.wait.max.ms",
        "https.ca.location",
        "https.ca.pem",
        "isolation.level",
        "log.connection.close",
        "log_level",
        "max.in.flight",
        "max.partition.fetch.bytes",
        "message.max.bytes",
        "metadata.max.age.ms",
        "metadata.recovery.strategy",
        "queued.max.messages.kbytes",
        "queued.min.messages",
        "receive.message.max.bytes",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "retry.backoff.max.ms",
        "retry.backoff.ms",
        "sasl.kerberos.keytab",
        "sasl.kerberos.principal",
        "sasl.kerberos.service.name",
        "sasl.mechanism",
        "sasl.mechanisms",
        "sasl.oauthbearer.client.id",
        "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.config",
        "sasl.oauthbearer.extensions",
        "sasl.oauthbearer.method",
        "sasl.oauthbearer.scope",
        "sasl.oauthbearer.token.endpoint.url",
        "sasl.password",
        "sasl.username",
        "security.protocol",
        "socket.connection.setup.timeout.ms",
        "socket.keepalive.enable",
        "socket.max.fails",
        "socket.nagle.disable",
        "socket.receive.buffer.bytes",
        "socket.send.buffer.bytes",
        "socket.timeout.ms",
        "ssl.ca.certificate.stores",
        "ssl.ca.location",
        "ssl.ca.pem",
        "ssl.certificate.location",
        "ssl.certificate.pem",
        "ssl.cipher.suites",
        "ssl.crl.location",
        "ssl.curves.list",
        "ssl.endpoint.identification.algorithm",
        "ssl.key.location",
        "ssl.key.password",
        "ssl.key.pem",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.sigalgs.list",
        "statistics.interval.ms",
        "topic.metadata.refresh.interval.ms",
        # of Java clients: translated or explained
        "fetch.max.wait.ms",
        "request.timeout.ms",
        "sasl.jaas.config",
        "max.poll.records",
    }
)
"""Properties that users may set; the reserved ones are left out."""

_NEAR: Final = 0.8
"""Similarity from which a name is suggested: many properties share their parts."""


def nearest_property(name: str) -> str | None:
    """Return the known property whose name is most like this one; None if none is."""
    return nearest(name, sorted(NAMES), cutoff=_NEAR)
