"""Clusters with TLS, SASL and access control: by properties and Secrets as users have them.

Nothing secret leaks.
"""

import logging
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclOperation,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from balanced_source.api import SplitId
from balanced_source.connectors.kafka import Anchor, DiscoverKafka, KafkaCluster, TopicList
from balanced_source.errors import DiscoveryError, RefusedDiscoveryError
from balanced_source_adapters.kafka.admin import KafkaAdmin
from balanced_source_adapters.mounted_secrets import MountedSecrets
from testbed.kafka import KafkaCluster as Brokers
from testbed.kafka import KafkaSecurity, Listener
from testbed.waiting import wait_until

PASSWORD = "correct-horse"  # noqa: S105 - of a broker on loopback
HERS: SplitId = ("c", "hers", 0)
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    security = KafkaSecurity(users={"alice": PASSWORD}, acls=True)
    with Brokers("secured", tmp_path_factory.mktemp("kafka-secured"), security=security) as cluster:
        cluster.admin.create_topics({"hers": 1, "other": 1})
        cluster.admin.allow(
            "alice", ResourceType.TOPIC, "hers", AclOperation.READ, AclOperation.DESCRIBE
        )
        cluster.admin.produce("hers", [b"x"] * 3)
        yield cluster


class Secrets:
    """Secrets as mounted files; `write` rotates one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.reader = MountedSecrets(folder)

    def write(self, name: str, content: Mapping[str, str]) -> None:
        (self._folder / name).mkdir(exist_ok=True)
        for key, value in content.items():
            (self._folder / name / key).write_text(value)


@pytest.fixture
def secrets(tmp_path: Path) -> Secrets:
    return Secrets(tmp_path)


def cluster_of(brokers: Brokers, listener: Listener, mechanism: str = "") -> KafkaCluster:
    sasl = {"sasl.mechanism": mechanism} if mechanism else {}
    return KafkaCluster(
        name="c",
        bootstrap_servers=brokers.bootstrap_of(listener),
        properties={"security.protocol": listener.protocol, **sasl},
        secrets=("kafka",),
    )


def jaas(module: str, password: str = PASSWORD) -> str:
    return f'{module} required username="alice" password="{password}";'


@pytest.mark.parametrize(
    ("listener", "mechanism", "line"),
    [
        (Listener.SASL, "PLAIN", jaas(PLAIN)),
        (Listener.SASL, "SCRAM-SHA-256", jaas(SCRAM)),
        (Listener.SASL_TLS, "SCRAM-SHA-512", jaas(SCRAM)),
        (Listener.SASL, "OAUTHBEARER", f'{OAUTH} required unsecuredLoginStringClaim_sub="alice";'),
        (Listener.TLS, "", ""),
        (Listener.MTLS, "", ""),
    ],
)
def test_every_authentication_works_with_files_of_java_clients_and_kubernetes(
    secured: Brokers, secrets: Secrets, listener: Listener, mechanism: str, line: str
) -> None:
    content = {"sasl.jaas.config": line} if line else {}
    if listener.has_tls:
        content["ca.crt"] = (secured.pki / "ca.crt").read_text()
    if listener is Listener.MTLS:
        assert secured.security is not None
        issued = secured.security.authority.issue_client("alice")
        content |= {"tls.crt": issued.certificate, "tls.key": issued.key}
    secrets.write("kafka", content)
    admin, cluster = KafkaAdmin(secrets.reader), cluster_of(secured, listener, mechanism)

    # encrypted, but no one in particular: the access rules know no such user
    if listener is Listener.TLS:
        found = admin.discover(
            DiscoverKafka(scope="c", round=1, cluster=cluster, subscriber=TopicList(("hers",)))
        )
        assert found.split_ids == {HERS}
    else:
        assert _ends(admin, cluster) == {HERS: 3}


def test_a_topic_without_rights_is_refused_by_name_of_the_right(
    secured: Brokers, secrets: Secrets
) -> None:
    secrets.write("kafka", {"sasl.jaas.config": jaas(SCRAM)})
    cluster = cluster_of(secured, Listener.SASL, "SCRAM-SHA-512")

    with pytest.raises(
        RefusedDiscoveryError, match=r"refuses topic other .*grant the user Describe and Read on it"
    ) as caught:
        KafkaAdmin(secrets.reader).discover(
            DiscoverKafka(scope="c", round=1, cluster=cluster, subscriber=TopicList(("other",)))
        )

    assert caught.value.reason == "NotAuthorized"


def test_a_wrong_password_is_reported_and_the_right_one_is_used_without_a_new_admin(
    secured: Brokers,
    secrets: Secrets,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Rotation: the Secret is read with every call; the client is recreated when it changed.

    No password anywhere.
    """
    caplog.set_level(logging.DEBUG)
    wrong = "battery-staple"
    secrets.write("kafka", {"sasl.jaas.config": jaas(SCRAM, wrong)})
    admin, cluster = KafkaAdmin(secrets.reader), cluster_of(secured, Listener.SASL, "SCRAM-SHA-512")

    told: list[str] = []

    def is_refused() -> bool:
        try:
            admin.ends(cluster, [HERS])
        except DiscoveryError as error:
            told.append(str(error))
            return error.reason == "AuthenticationFailed"
        return False

    wait_until(is_refused, 60, "the wrong password to be told")
    secrets.write("kafka", {"sasl.jaas.config": jaas(SCRAM)})
    assert _ends(admin, cluster) == {HERS: 3}

    rotated = "rotated-tire"
    change = UserScramCredentialUpsertion(
        "alice", ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096), rotated.encode()
    )
    for future in secured.admin.client.alter_user_scram_credentials([change]).values():
        future.result(timeout=30)
    secrets.write("kafka", {"sasl.jaas.config": jaas(SCRAM, rotated)})
    wait_until(lambda: _ends(admin, cluster) == {HERS: 3}, 60, "the rotated password to work")

    everything = "\n".join([*told, caplog.text, *capfd.readouterr()])
    assert not [secret for secret in (wrong, PASSWORD, rotated) if secret in everything]


def _ends(admin: KafkaAdmin, cluster: KafkaCluster) -> Mapping[SplitId, int]:
    try:
        return {split_id: answer.end for split_id, answer in admin.ends(cluster, [HERS]).items()}
    except DiscoveryError:
        return {}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ({"security.protocol": "hunter2-in-the-wrong-place"}, "security.protocol"),
        ({"sasl.password.typo": "hunter2"}, "sasl.password.typo"),
        ({"ssl.key.pem": "hunter2"}, "ssl"),
        ({"sasl.jaas.config": "hunter2"}, "sasl.jaas.config"),
        ({"group.id": "hunter2"}, "group.id"),
        ({"ssl.truststore.location": "/hunter2"}, "ssl.ca.location"),
    ],
)
def test_an_unusable_secret_is_reported_without_its_content(
    secured: Brokers, secrets: Secrets, content: Mapping[str, str], says: str
) -> None:
    secrets.write("kafka", content)
    cluster = cluster_of(secured, Listener.TLS)

    with pytest.raises(RefusedDiscoveryError) as caught:
        KafkaAdmin(secrets.reader).begins(cluster, [HERS])

    assert says in str(caught.value)
    assert "hunter2" not in repr(caught.value)
    assert caught.value.reason in ("InvalidProperties", "TlsFailed")
    assert Anchor.EARLIEST.value not in str(caught.value)


def test_a_secret_that_is_not_mounted_is_named(secured: Brokers, secrets: Secrets) -> None:
    with pytest.raises(RefusedDiscoveryError, match="secret kafka is not mounted"):
        KafkaAdmin(secrets.reader).ends(cluster_of(secured, Listener.SASL), [HERS])
