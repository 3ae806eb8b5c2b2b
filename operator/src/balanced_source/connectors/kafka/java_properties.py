"""Properties as Java clients write them, and as Secrets of Kubernetes hold them.

Translated, or refused.

Users paste what worked in their Flink job, in Spark's own source or in a Strimzi Secret. What has
the same meaning here is taken over, a JAAS line included; for all else the error names what
librdkafka has instead. No error holds a value.
"""

import re
from collections.abc import Mapping
from typing import Final

from balanced_source.errors import InvalidSpecError

JAAS: Final = "sasl.jaas.config"

_RENAMED: Final[Mapping[str, str]] = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "request.timeout.ms": "socket.timeout.ms",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
    # Secrets of cert-manager and of Strimzi.
    "ca.crt": "ssl.ca.pem",
    "tls.crt": "ssl.certificate.pem",
    "tls.key": "ssl.key.pem",
    "user.crt": "ssl.certificate.pem",
    "user.key": "ssl.key.pem",
}

_WITHOUT_MEANING: Final = frozenset(
    {"ca.p12", "ca.password", "user.p12", "user.password", "metric.reporters"}
)
"""The same certificates in a format for Java, beside those that are used."""

_PEM_TYPES: Final = frozenset({"ssl.truststore.type", "ssl.keystore.type"})

_GROUP: Final = "readers join no consumer group, so there is nothing to time"
_BYTES: Final = "rows have keys and values as bytes: convert them in the query"
_TLS: Final = "TLS is OpenSSL's here: leave it out"
_LOGIN: Final = (
    "no Java classes here: for OAuth set sasl.oauthbearer.method=oidc with"
    " sasl.oauthbearer.token.endpoint.url, sasl.oauthbearer.client.id and, in a Secret,"
    " sasl.oauthbearer.client.secret"
)

_REFUSED: Final[Mapping[str, str]] = {
    "ssl.truststore.location": (
        "set ssl.ca.location (a file of PEM certificates), or ssl.ca.pem in a Secret"
    ),
    "ssl.truststore.password": (
        "certificates of authorities need no password: set ssl.ca.location or ssl.ca.pem"
    ),
    "ssl.protocol": _TLS,
    "ssl.enabled.protocols": _TLS,
    "ssl.provider": _TLS,
    "ssl.keymanager.algorithm": _TLS,
    "ssl.trustmanager.algorithm": _TLS,
    "ssl.engine.factory.class": _TLS,
    "ssl.secure.random.implementation": _TLS,
    "security.providers": _TLS,
    "sasl.login.callback.handler.class": _LOGIN,
    "sasl.client.callback.handler.class": _LOGIN,
    "sasl.login.class": _LOGIN,
    "key.deserializer": _BYTES,
    "value.deserializer": _BYTES,
    "interceptor.classes": "no Java classes here",
    "max.poll.records": "set limits.maxOffsetsPerTrigger of the source",
    "max.poll.interval.ms": _GROUP,
    "session.timeout.ms": _GROUP,
    "heartbeat.interval.ms": _GROUP,
    "default.api.timeout.ms": "set socket.timeout.ms",
    "socket.connection.setup.timeout.max.ms": "set socket.connection.setup.timeout.ms",
    "exclude.internal.topics": "internal topics are never matched by a pattern",
}

_JAAS_LINE: Final = re.compile(
    r"\s*([\w.]+)\s+(?:required|requisite|sufficient|optional)\s*(.*?)\s*;?\s*", re.DOTALL
)
_JAAS_OPTION: Final = re.compile(r'([\w.]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s";]+))\s*')


def translated(properties: Mapping[str, str], *, field: str) -> dict[str, str]:
    """The properties in librdkafka's words.

    Args:
        properties: from a spec or from a Secret.
        field: where they are from, for errors.

    Raises:
        InvalidSpecError: names the property and what to set instead; never a value.
    """
    result: dict[str, str] = {}
    for name, value in properties.items():
        if reason := _REFUSED.get(name):
            raise InvalidSpecError(f"{name} is a property of Java clients: {reason}", field=field)
        if name == "ssl.endpoint.identification.algorithm":
            result[name] = value or "none"
        elif name in _PEM_TYPES:
            _check_type(name, value, field)
        elif name == "ssl.keystore.location" and value.endswith(".jks"):
            raise InvalidSpecError(f"{name}: a PKCS#12 file is needed, not a JKS", field=field)
        elif name != JAAS and name not in _WITHOUT_MEANING:
            result[_RENAMED.get(name, name)] = value
    if JAAS in properties:
        result.pop("password", None)  # Strimzi writes it beside the JAAS line that has it
        result |= from_jaas(properties[JAAS], field=field)
    return result


def from_jaas(line: str, *, field: str) -> dict[str, str]:
    """What a JAAS line says, in librdkafka's words.

    Raises:
        InvalidSpecError: it is none, or of a login module without a counterpart. Never holds the
            line.
    """
    match = _JAAS_LINE.fullmatch(line)
    if match is None:
        raise InvalidSpecError(f'{JAAS}: expected `MODULE required name="value" …;`', field=field)
    module, options = match[1].rpartition(".")[2], _jaas_options(match[2], field)
    match module:
        case "PlainLoginModule" | "ScramLoginModule":
            return _picked(
                options, {"username": "sasl.username", "password": "sasl.password"}, field
            )
        case "OAuthBearerLoginModule":
            return _oauth(options, field)
        case "Krb5LoginModule":
            raise InvalidSpecError(
                f"{JAAS}: set sasl.kerberos.principal, sasl.kerberos.keytab and"
                " sasl.kerberos.service.name",
                field=field,
            )
        case _:
            raise InvalidSpecError(
                f"{JAAS}: {module} has no counterpart in librdkafka", field=field
            )


def _jaas_options(text: str, field: str) -> dict[str, str]:
    options, at = {}, 0
    while at < len(text):
        match = _JAAS_OPTION.match(text, at)
        if match is None:
            raise InvalidSpecError(
                f'{JAAS}: options are name="value", separated by blanks', field=field
            )
        options[match[1]] = re.sub(r"\\(.)", r"\1", match[2]) if match[2] is not None else match[3]
        at = match.end()
    return options


def _oauth(options: Mapping[str, str], field: str) -> dict[str, str]:
    if (principal := options.get("unsecuredLoginStringClaim_sub")) is not None:
        return {
            "enable.sasl.oauthbearer.unsecure.jwt": "true",
            "sasl.oauthbearer.config": f"principal={principal}",
        }
    names = {
        "clientId": "sasl.oauthbearer.client.id",
        "clientSecret": "sasl.oauthbearer.client.secret",
    }
    found = {"sasl.oauthbearer.method": "oidc", **_picked(options, names, field)}
    return found | ({"sasl.oauthbearer.scope": options["scope"]} if "scope" in options else {})


def _picked(options: Mapping[str, str], names: Mapping[str, str], field: str) -> dict[str, str]:
    if missing := [name for name in names if name not in options]:
        raise InvalidSpecError(f"{JAAS}: {missing[0]} is missing", field=field)
    return {names[name]: options[name] for name in names}


def _check_type(name: str, value: str, field: str) -> None:
    if value.upper() not in ("PEM", "PKCS12"):
        raise InvalidSpecError(
            f"{name}: only PEM and PKCS12 are understood, no Java key stores", field=field
        )
