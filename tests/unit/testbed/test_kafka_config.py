from testbed.kafka import KafkaSecurity, Listener, Mechanism
from testbed.kafka.config import NodePorts, new_cluster_id, server_properties


def properties(
    nodes: int, security: KafkaSecurity | None = None, extra: dict[str, str] | None = None
) -> dict[str, str]:
    listeners = (Listener.PLAINTEXT, *(security.listeners if security else ()))
    ports = {
        node: NodePorts(
            controller=node * 100,
            listeners={name: node * 100 + i for i, name in enumerate(listeners, 1)},
        )
        for node in range(1, nodes + 1)
    }
    text = server_properties(node=1, ports=ports, data="/d", security=security, extra=extra or {})
    return dict(line.split("=", 1) for line in text.splitlines())


def test_all_nodes_vote_and_replicate() -> None:
    settings = properties(3)
    assert settings["controller.quorum.voters"] == (
        "1@127.0.0.1:100,2@127.0.0.1:200,3@127.0.0.1:300"
    )
    assert settings["offsets.topic.replication.factor"] == "3"
    assert properties(1)["offsets.topic.replication.factor"] == "1"


def test_nothing_is_advertised_beyond_loopback() -> None:
    advertised = properties(1, KafkaSecurity())["advertised.listeners"].split(",")
    assert len(advertised) == 5
    assert all("://127.0.0.1:" in address for address in advertised)


def test_own_settings_win() -> None:
    assert properties(1, extra={"num.io.threads": "7"})["num.io.threads"] == "7"


def test_certificates_fit_on_one_line() -> None:
    chain = properties(1, KafkaSecurity())["ssl.keystore.certificate.chain"]
    assert chain.startswith("-----BEGIN CERTIFICATE-----\\n")


def test_access_control_leaves_the_open_listener_to_the_testbed() -> None:
    assert properties(1, KafkaSecurity(acls=True))["super.users"] == "User:ANONYMOUS"
    assert "authorizer.class.name" not in properties(1, KafkaSecurity())


def test_scram_users_are_made_before_the_first_start() -> None:
    arguments = KafkaSecurity(users={"alice": "pw"}).format_arguments()
    assert arguments[1] == f"{Mechanism.SCRAM_SHA_256}=[name=alice,password=pw]"
    assert len(arguments) == 4


def test_a_cluster_id_is_a_short_uuid() -> None:
    assert len(new_cluster_id()) == 22
