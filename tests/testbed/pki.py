"""Certificates, keys, tokens and kubeconfigs for the control plane and for Kafka.

Everything is recreated for each testbed and valid for a few days: nothing here is worth keeping.
"""

import datetime as dt
import ipaddress
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_VALID = dt.timedelta(days=30)
_CLOCK_SKEW = dt.timedelta(minutes=5)
PrivateKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPair:
    """A certificate and its private key, both PEM; the key is unencrypted PKCS #8."""

    certificate: str
    key: str

    def write(self, folder: Path, name: str) -> tuple[Path, Path]:
        """Write `NAME.crt` and `NAME.key`; returns the two paths."""
        certificate, key = folder / f"{name}.crt", folder / f"{name}.key"
        certificate.write_text(self.certificate)
        write_private(key, self.key)
        return certificate, key


class CertificateAuthority:
    """Signs serving and client certificates of one testbed."""

    def __init__(self, common_name: str) -> None:
        self._key = _new_ec_key()
        self._name = _name(common_name)
        builder = _builder(self._name, self._name, self._key, self._key)
        builder = builder.add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        builder = builder.add_extension(_key_usage(signs_certificates=True), critical=True)
        self._certificate = builder.sign(self._key, hashes.SHA256())

    @property
    def certificate(self) -> str:
        """The certificate that clients and servers trust, PEM."""
        return _pem(self._certificate)

    def issue_server(self, common_name: str, names: Iterable[str]) -> KeyPair:
        """A serving certificate for host names and IP addresses."""
        return self._issue(
            _name(common_name), _new_ec_key(), [ExtendedKeyUsageOID.SERVER_AUTH], names
        )

    def issue_peer(self, common_name: str, names: Iterable[str]) -> KeyPair:
        """A certificate for both ends of mutual TLS between programs that share it."""
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        return self._issue(_name(common_name), _new_ec_key(), usages, names)

    def issue_client(self, common_name: str, organizations: Iterable[str] = ()) -> KeyPair:
        """A client certificate; Kubernetes takes name and organizations for user and groups."""
        # RSA: the JVM's Kubernetes client reads elliptic curve keys only with a further library
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        subject = _name(common_name, organizations)
        return self._issue(subject, key, [ExtendedKeyUsageOID.CLIENT_AUTH], ())

    def _issue(
        self,
        subject: x509.Name,
        key: PrivateKey,
        usages: Iterable[x509.ObjectIdentifier],
        names: Iterable[str],
    ) -> KeyPair:
        builder = _builder(subject, self._name, key, self._key)
        builder = builder.add_extension(
            x509.BasicConstraints(ca=False, path_length=None), critical=True
        )
        builder = builder.add_extension(_key_usage(signs_certificates=False), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        if alternatives := [_general_name(name) for name in names]:
            builder = builder.add_extension(
                x509.SubjectAlternativeName(alternatives), critical=False
            )
        return KeyPair(
            certificate=_pem(builder.sign(self._key, hashes.SHA256())), key=_private_pem(key)
        )


def service_account_keys() -> tuple[str, str]:
    """Private and public key (PEM) that sign and check service account tokens."""
    key = _new_ec_key()
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return _private_pem(key), public.decode()


def new_token() -> str:
    """A random bearer token."""
    return secrets.token_hex(24)


def token_file(users: Iterable[tuple[str, str, Iterable[str]]]) -> str:
    """The API server's static token file.

    Args:
        users: token, user name and groups of each.
    """
    lines = []
    for token, user, groups in users:
        joined = ",".join(groups)
        lines.append(f'{token},{user},{user},"{joined}"' if joined else f"{token},{user},{user}")
    return "\n".join(lines) + "\n"


def kubeconfig(
    *,
    server: str,
    ca_file: Path,
    user: str,
    credentials: dict[str, str],
    namespace: str = "default",
) -> str:
    """A kubeconfig for one user.

    Args:
        server: URL of the API server.
        ca_file: certificate of the authority that signed the server's certificate.
        user: name of the entry.
        credentials: fields of the user entry, such as `token` or `client-certificate`.
        namespace: the default one.
    """
    context = {"cluster": "testbed", "user": user, "namespace": namespace}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "testbed",
                "cluster": {"server": server, "certificate-authority": str(ca_file)},
            },
        ],
        "users": [{"name": user, "user": credentials}],
        "contexts": [{"name": "testbed", "context": context}],
        "current-context": "testbed",
    }
    return yaml.safe_dump(document, sort_keys=False)


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, from its first byte on."""
    path.unlink(missing_ok=True)
    path.touch(mode=0o600)
    path.write_text(text)


def _new_ec_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _name(common_name: str, organizations: Iterable[str] = ()) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, name) for name in organizations]
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: PrivateKey, issuer_key: PrivateKey
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    own, issuing = key.public_key(), issuer_key.public_key()
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(own)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + _VALID)
        # Python 3.13 refuses certificates without these two
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(own), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuing), critical=False)
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        key_encipherment=not signs_certificates,
        content_commitment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def _private_pem(key: PrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()
