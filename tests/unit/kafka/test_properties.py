"""Properties that users may set, and what is said of the others."""

import pytest

from balanced_source.connectors.kafka import KafkaCluster, check_reserved
from balanced_source.connectors.kafka.cluster import is_brokers
from balanced_source.connectors.kafka.properties import check_not_lending, check_properties
from balanced_source.errors import InvalidSpecError


@pytest.mark.parametrize("names", [("group.id", "client.id"), ("client.id", "group.id")])
def test_the_first_reserved_property_by_name_is_rejected(names: tuple[str, ...]) -> None:
    """Whatever the order in the spec is, the message is the same."""
    with pytest.raises(InvalidSpecError, match=r"^f: property client\.id is reserved: made from"):
        check_reserved(dict.fromkeys(("fetch.min.bytes", *names), "x"), field="f")


@pytest.mark.parametrize(
    "names", [("ssl.key.pem", "sasl.password"), ("sasl.password", "ssl.key.pem")]
)
def test_the_first_secret_property_by_name_is_rejected(names: tuple[str, ...]) -> None:
    with pytest.raises(InvalidSpecError, match=r"^f: property sasl\.password is a secret: put"):
        check_properties(dict.fromkeys(names, "x"), field="f")


@pytest.mark.parametrize(
    "names",
    [("ssl.key.location", "sasl.kerberos.keytab"), ("sasl.kerberos.keytab", "ssl.key.location")],
)
def test_the_first_lent_property_by_name_is_rejected(names: tuple[str, ...]) -> None:
    with pytest.raises(InvalidSpecError, match=r"property sasl\.kerberos\.keytab is not allowed"):
        check_not_lending(dict.fromkeys(names, "x"), field="f")


def test_other_properties_are_accepted() -> None:
    properties = {
        "fetch.min.bytes": "1",
        "security.protocol": "SSL",
        "ssl.ca.location": "/etc/ssl/certs/ca-certificates.crt",
    }

    check_properties(properties, field="f")
    check_not_lending(properties, field="f")


@pytest.mark.parametrize("path", ["/proc/self/fd/1", "/etc/ssl/../shadow", "/etc/pki/../../x"])
def test_certificates_outside_of_public_folders_are_rejected(path: str) -> None:
    with pytest.raises(InvalidSpecError, match=r"ssl\.ca\.location is not allowed here: it names"):
        check_not_lending({"ssl.ca.location": path}, field="f")


@pytest.mark.parametrize(
    ("properties", "is_held_back"),
    [
        ({}, True),
        ({"isolation.level": "read_committed"}, True),
        ({"isolation.level": "READ_COMMITTED"}, True),
        ({"isolation.level": " Read_Committed"}, True),
        ({"isolation.level": "read_uncommitted"}, False),
        ({"isolation.level": "READ_UNCOMMITTED"}, False),
    ],
)
def test_records_of_open_transactions_are_held_back_unless_the_user_wants_them(
    properties: dict[str, str], *, is_held_back: bool
) -> None:
    cluster = KafkaCluster(name="c", bootstrap_servers="b:1", properties=properties)

    assert cluster.is_read_committed is is_held_back


@pytest.mark.parametrize(
    ("text", "is_valid"),
    [
        ("b:9092", True),
        ("b", True),
        (" b-1.kafka:9092 , SSL://[::1]:9093 ", True),
        ("b:9092,", False),
        ("b:909200", False),
        ("", False),
        ("b:9092\n", False),
    ],
)
def test_addresses_of_brokers(text: str, *, is_valid: bool) -> None:
    assert is_brokers(text) is is_valid
