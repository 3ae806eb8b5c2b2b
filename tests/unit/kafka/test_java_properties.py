"""What users paste from Java clients and Secrets is translated, or refused with a remedy."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balanced_source.connectors.kafka import KafkaCluster, check_reserved, translated
from balanced_source.connectors.kafka.java_properties import from_jaas
from balanced_source.errors import InvalidSpecError
from balanced_source_adapters.kafka.config import client_config, without_secrets

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"


@pytest.mark.parametrize(
    ("java", "ours"),
    [
        ({"request.timeout.ms": "1000"}, {"socket.timeout.ms": "1000"}),
        (
            {"fetch.max.wait.ms": "10", "fetch.max.bytes": "5"},
            {"fetch.wait.max.ms": "10", "fetch.max.bytes": "5"},
        ),
        (
            {"ssl.endpoint.identification.algorithm": ""},
            {"ssl.endpoint.identification.algorithm": "none"},
        ),
        ({"ssl.truststore.type": "PEM", "ssl.truststore.certificates": "C"}, {"ssl.ca.pem": "C"}),
        (
            {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.certificate.chain": "C",
                "ssl.keystore.key": "K",
            },
            {"ssl.certificate.pem": "C", "ssl.key.pem": "K"},
        ),
        (
            {"ca.crt": "A", "tls.crt": "C", "tls.key": "K"},
            {"ssl.ca.pem": "A", "ssl.certificate.pem": "C", "ssl.key.pem": "K"},
        ),
        (
            {"user.crt": "C", "user.key": "K", "user.p12": "…", "user.password": "x"},
            {"ssl.certificate.pem": "C", "ssl.key.pem": "K"},
        ),
        (
            {"password": "p", "sasl.jaas.config": f'{SCRAM} required username="u" password="p";'},
            {"sasl.username": "u", "sasl.password": "p"},
        ),
        (
            {"security.protocol": "SSL", "client.rack": "a"},
            {"security.protocol": "SSL", "client.rack": "a"},
        ),
        (
            {"ssl.keystore.type": "pkcs12", "ssl.keystore.location": "/x.p12"},
            {"ssl.keystore.location": "/x.p12"},
        ),
        ({"client.id": "reads.jks"}, {"client.id": "reads.jks"}),
        (
            {"ssl.endpoint.identification.algorithm": "https"},
            {"ssl.endpoint.identification.algorithm": "https"},
        ),
        ({"password": "p"}, {"password": "p"}),
    ],
)
def test_the_same_meaning_is_taken_over(java: Mapping[str, str], ours: Mapping[str, str]) -> None:
    assert translated(java, field="f") == ours


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("ssl.truststore.location", "/x.jks", "ssl.ca.location"),
        ("ssl.truststore.type", "JKS", "PEM"),
        ("ssl.keystore.location", "/x.jks", "PKCS#12"),
        ("sasl.login.callback.handler.class", "X", "sasl.oauthbearer.method=oidc"),
        ("key.deserializer", "X", "in the query"),
        ("max.poll.records", "500", "limits.maxOffsetsPerTrigger"),
        ("session.timeout.ms", "1", "no consumer group"),
        ("sasl.jaas.config", "x.Krb5LoginModule required;", "sasl.kerberos.principal"),
        ("sasl.jaas.config", "x.MyLoginModule required;", "MyLoginModule has no counterpart"),
        ("sasl.jaas.config", f'{SCRAM} required username="u";', "password is missing"),
        ("sasl.jaas.config", f'{SCRAM} required password="p";', "username is missing"),
        ("sasl.jaas.config", f'{OAUTH} required clientId="c";', "clientSecret is missing"),
        ("sasl.jaas.config", "no line at all", "expected `MODULE required"),
        ("sasl.jaas.config", f"{SCRAM} required username u;", "separated by blanks"),
    ],
)
def test_other_properties_are_rejected_with_an_alternative(
    name: str, value: str, says: str
) -> None:
    with pytest.raises(InvalidSpecError, match=r"^f: ") as caught:
        translated({name: value}, field="f")

    assert name in str(caught.value)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("line", "want"),
    [
        (f"{SCRAM} required username=u password=p;", ("u", "p")),
        (f'{SCRAM} required\n  username="a b"\n  password="q\\"uo;te\\\\" ;', ("a b", 'q"uo;te\\')),
        (
            (
                'org.apache.kafka.common.security.plain.PlainLoginModule required username=""'
                ' password=" "'
            ),
            ("", " "),
        ),
    ],
)
def test_jaas_lines_have_quotes_escapes_and_line_breaks(line: str, want: tuple[str, str]) -> None:
    assert tuple(from_jaas(line, field="f").values()) == want


def test_oauth_in_jaas() -> None:
    assert from_jaas(f'{OAUTH} required clientId="c" clientSecret="s" scope="a b";', field="f") == {
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.client.id": "c",
        "sasl.oauthbearer.client.secret": "s",
        "sasl.oauthbearer.scope": "a b",
    }
    assert "sasl.oauthbearer.scope" not in from_jaas(
        f"{OAUTH} required clientId=c clientSecret=s;", field="f"
    )
    assert from_jaas(f'{OAUTH} required unsecuredLoginStringClaim_sub="alice";', field="f") == {
        "enable.sasl.oauthbearer.unsecure.jwt": "true",
        "sasl.oauthbearer.config": "principal=alice",
    }


@given(st.text(max_size=40))
def test_no_error_holds_a_part_of_a_line_that_is_not_understood(secret: str) -> None:
    with pytest.raises(InvalidSpecError) as caught:
        from_jaas(f"{SCRAM} required username=u password={secret}hunter2 ;=", field="f")

    assert "hunter2" not in str(caught.value)


class Secrets:
    def __init__(self, **content: Mapping[str, str]) -> None:
        self._content = content

    def read(self, name: str) -> Mapping[str, str]:
        return self._content[name]


def test_a_secret_may_hold_no_reserved_property_either() -> None:
    """A plugin in a Secret would run in operator and readers."""
    cluster = KafkaCluster(name="c", bootstrap_servers="b:1", secrets=("s",))

    with pytest.raises(
        InvalidSpecError, match=r"Secret s: property plugin\.library\.paths is reserved"
    ):
        client_config(cluster, Secrets(s={"plugin.library.paths": "/evil.so"}), client_id="x")
    with pytest.raises(InvalidSpecError, match="reserved"):
        check_reserved({"bootstrap.servers": "elsewhere"}, field="f")


@pytest.mark.scenario("A16")
def test_later_secrets_win_and_the_way_to_the_cluster_is_that_of_the_spec() -> None:
    """The client id and timeouts of the user reach the client."""
    cluster = KafkaCluster(
        name="c",
        bootstrap_servers="b:1",
        properties={"socket.timeout.ms": "99999"},
        secrets=("one", "two"),
    )
    secrets = Secrets(one={"sasl.password": "1", "sasl.username": "u"}, two={"sasl.password": "2"})

    config = client_config(cluster, secrets, client_id="test-prefix-admin")

    assert (config["sasl.password"], config["sasl.username"], config["socket.timeout.ms"]) == (
        "2",
        "u",
        "99999",
    )
    assert (config["bootstrap.servers"], config["client.id"]) == ("b:1", "test-prefix-admin")


def test_texts_of_the_client_are_shown_without_secrets() -> None:
    config = {
        "sasl.password": "hunter2",
        "sasl.username": "robert",
        "security.protocol": "SSL",
        "ssl.key.pem": "",
    }

    assert without_secrets("hunter2 of robert at SSL", config) == "*** of *** at SSL"
    assert (
        without_secrets('Invalid value "oops" for property x', config)
        == "Invalid value for property x"
    )
