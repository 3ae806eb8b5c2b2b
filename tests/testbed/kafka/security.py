"""Listeners with TLS, SASL and access control beside the open one.

The open listener stays: brokers talk to each other over it, and so do the testbed's own helpers.
With access control on, its anonymous user is a super user, while everybody who authenticates may
only do what an access control list allows.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from testbed.pki import CertificateAuthority


class Listener(enum.StrEnum):
    """A way into the broker; each has a port of its own."""

    PLAINTEXT = "PLAINTEXT"
    TLS = "TLS"
    MTLS = "MTLS"
    SASL = "SASL"
    SASL_TLS = "SASLTLS"

    @property
    def protocol(self) -> str:
        """Kafka's name of its security protocol."""
        return _PROTOCOLS[self]

    @property
    def has_tls(self) -> bool:
        """Whether traffic is encrypted."""
        return self.protocol.endswith("SSL")

    @property
    def has_sasl(self) -> bool:
        """Whether users log in by SASL."""
        return self.protocol.startswith("SASL")


_PROTOCOLS = {
    Listener.PLAINTEXT: "PLAINTEXT",
    Listener.TLS: "SSL",
    Listener.MTLS: "SSL",
    Listener.SASL: "SASL_PLAINTEXT",
    Listener.SASL_TLS: "SASL_SSL",
}


class Mechanism(enum.StrEnum):
    """How a user logs in by SASL; every SASL listener takes all of them."""

    PLAIN = "PLAIN"
    SCRAM_SHA_256 = "SCRAM-SHA-256"
    SCRAM_SHA_512 = "SCRAM-SHA-512"
    OAUTHBEARER = "OAUTHBEARER"


_SCRAM = (Mechanism.SCRAM_SHA_256, Mechanism.SCRAM_SHA_512)
_LOGIN = "org.apache.kafka.common.security"


@dataclass(frozen=True, kw_only=True)
class KafkaSecurity:
    """What a cluster offers besides its open listener.

    Attributes:
        listeners: further listeners.
        users: name and password, for PLAIN and SCRAM. OAUTHBEARER takes any name, unsigned; mutual
            TLS takes any certificate of `authority`, its common name being the user.
        acls: only let authenticated users do what access control lists allow.
        authority: signs the brokers' certificates and checks those of clients.
    """

    listeners: tuple[Listener, ...] = (
        Listener.TLS,
        Listener.MTLS,
        Listener.SASL,
        Listener.SASL_TLS,
    )
    users: Mapping[str, str] = field(default_factory=dict)
    acls: bool = False
    authority: CertificateAuthority = field(
        default_factory=lambda: CertificateAuthority("balanced-source testbed kafka")
    )

    def write_files(self, folder: Path) -> None:
        """Write the authority's certificate, for clients to trust."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "ca.crt").write_text(self.authority.certificate)

    def server_properties(self) -> dict[str, str]:
        """Broker settings for the further listeners and for access control."""
        properties: dict[str, str] = {}
        if any(listener.has_tls for listener in self.listeners):
            properties |= self._tls_properties()
        for listener in self.listeners:
            properties |= self._listener_properties(listener)
        if self.acls:
            properties |= {
                "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                "super.users": "User:ANONYMOUS",
                "allow.everyone.if.no.acl.found": "false",
            }
        return properties

    def format_arguments(self) -> list[str]:
        """Arguments of the storage tool: SCRAM users must be there before the first start."""
        arguments = []
        for user, password in self.users.items():
            for mechanism in _SCRAM:
                arguments += ["--add-scram", f"{mechanism}=[name={user},password={password}]"]
        return arguments

    def client_config(
        self, listener: Listener, folder: Path, user: str | None, mechanism: Mechanism
    ) -> dict[str, str]:
        """Settings of librdkafka for a client on a listener, without `bootstrap.servers`.

        Args:
            listener: which one it will use.
            folder: where `write_files` has written to; a client certificate goes there too.
            user: who the client is; needed for mutual TLS and SASL.
            mechanism: how the user logs in, on a SASL listener.
        """
        config = {"security.protocol": listener.protocol}
        if listener.has_tls:
            config["ssl.ca.location"] = str(folder / "ca.crt")
        if user is None:
            return config
        if listener is Listener.MTLS:
            certificate, key = self.authority.issue_client(user).write(folder, f"client-{user}")
            config |= {"ssl.certificate.location": str(certificate), "ssl.key.location": str(key)}
        if listener.has_sasl:
            config |= self._sasl_client_config(user, mechanism)
        return config

    def _sasl_client_config(self, user: str, mechanism: Mechanism) -> dict[str, str]:
        config = {"sasl.mechanism": mechanism.value}
        if mechanism is Mechanism.OAUTHBEARER:
            return config | {
                "enable.sasl.oauthbearer.unsecure.jwt": "true",
                "sasl.oauthbearer.config": f"principal={user}",
            }
        return config | {"sasl.username": user, "sasl.password": self.users[user]}

    def _tls_properties(self) -> dict[str, str]:
        server = self.authority.issue_server("kafka", ["127.0.0.1", "localhost"])
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": server.certificate,
            "ssl.keystore.key": server.key,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": self.authority.certificate,
            "ssl.principal.mapping.rules": "RULE:^.*CN=([^,]+).*$/$1/,DEFAULT",
        }

    def _listener_properties(self, listener: Listener) -> dict[str, str]:
        prefix = f"listener.name.{listener.lower()}"
        properties = {}
        if listener is Listener.MTLS:
            properties[f"{prefix}.ssl.client.auth"] = "required"
        if listener.has_sasl:
            properties[f"{prefix}.sasl.enabled.mechanisms"] = ",".join(Mechanism)
            for mechanism in Mechanism:
                name = f"{prefix}.{mechanism.lower()}.sasl.jaas.config"
                properties[name] = self._login_module(mechanism)
        return properties

    def _login_module(self, mechanism: Mechanism) -> str:
        match mechanism:
            case Mechanism.PLAIN:
                users = " ".join(f'user_{name}="{word}"' for name, word in self.users.items())
                return f"{_LOGIN}.plain.PlainLoginModule required {users};"
            case Mechanism.SCRAM_SHA_256 | Mechanism.SCRAM_SHA_512:
                return f"{_LOGIN}.scram.ScramLoginModule required;"
            case Mechanism.OAUTHBEARER:
                module = f"{_LOGIN}.oauthbearer.OAuthBearerLoginModule required"
                return f'{module} unsecuredLoginStringClaim_sub="broker";'
