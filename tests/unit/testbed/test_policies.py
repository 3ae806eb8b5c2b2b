"""NetworkPolicies as rules of nftables."""

from typing import Any

import pytest

from testbed.errors import TestbedError
from testbed.node.policies import ruleset

_NAMESPACES = [
    {"metadata": {"name": "system", "labels": {"team": "platform"}}},
    {"metadata": {"name": "jobs", "labels": {"team": "data"}}},
]


def _pod(name: str, address: str | None, namespace: str = "system") -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "labels": {"app": name}}
    return {"metadata": metadata, "status": {"podIP": address} if address else {}}


def _policy(**spec: Any) -> dict[str, Any]:
    selector = {"matchLabels": {"app": "operator"}}
    return {"metadata": {"namespace": "system"}, "spec": {"podSelector": selector, **spec}}


_PODS = [
    _pod("operator", "10.0.0.1"),
    _pod("other", "10.0.0.2"),
    _pod("driver", "10.0.0.3", "jobs"),
    _pod("operator", "10.0.0.4", "jobs"),
    _pod("operator", None),
]


def _chain(rules: str, name: str) -> list[str]:
    _, _, rest = rules.partition(f"  chain {name} {{\n")
    return [line.strip() for line in rest.partition("  }")[0].splitlines()]


def test_allowed_ports_return_and_other_beginnings_are_dropped() -> None:
    ports = [{"port": 53, "protocol": "UDP"}, {"port": 443}]
    policy = _policy(policyTypes=["Egress"], egress=[{"ports": ports}])

    rules = ruleset([policy], _PODS, _NAMESPACES)

    assert _chain(rules, "egress_10_0_0_1") == [
        "udp dport 53 return",
        "tcp dport 443 return",
        "tcp flags syn / syn,ack counter drop",
        "meta l4proto udp counter drop",
    ]


def test_only_selected_pods_in_the_policys_namespace_are_isolated_in_its_directions() -> None:
    rules = ruleset([_policy(policyTypes=["Egress"])], _PODS, _NAMESPACES)

    jumps = {line.strip() for line in rules.splitlines() if "jump" in line}
    assert jumps == {"ip saddr 10.0.0.1 jump egress_10_0_0_1"}


def test_peers_are_found_by_the_labels_of_pods_and_namespaces() -> None:
    peer = {
        "namespaceSelector": {"matchLabels": {"team": "data"}},
        "podSelector": {"matchLabels": {"app": "driver"}},
    }
    ingress = [{"from": [peer], "ports": [{"port": 8080}]}, {"ports": [{"port": 8081}]}]
    policy = _policy(policyTypes=["Ingress"], ingress=ingress)

    rules = ruleset([policy], _PODS, _NAMESPACES)

    assert _chain(rules, "ingress_10_0_0_1")[:2] == [
        "ip saddr 10.0.0.3 tcp dport 8080 return",
        "tcp dport 8081 return",
    ]


def test_a_rule_whose_peers_are_not_there_allows_nothing() -> None:
    """An empty choice of peers must not become a rule for all."""
    absent = {"podSelector": {"matchLabels": {"app": "absent"}}}
    policy = _policy(policyTypes=["Ingress"], ingress=[{"from": [absent]}])

    rules = ruleset([policy], _PODS, _NAMESPACES)

    assert not any("return" in line for line in _chain(rules, "ingress_10_0_0_1"))


def test_a_rule_without_peers_and_ports_allows_everything() -> None:
    policy = _policy(policyTypes=["Egress"], egress=[{}])

    rules = ruleset([policy], _PODS, _NAMESPACES)

    assert _chain(rules, "egress_10_0_0_1")[0] == "meta l4proto { tcp, udp } return"


def test_policies_of_one_pod_add_up() -> None:
    first, second = (
        _policy(policyTypes=["Egress"], egress=[{"ports": [{"port": number}]}]) for number in (1, 2)
    )

    rules = ruleset([first, second], _PODS, _NAMESPACES)

    assert _chain(rules, "egress_10_0_0_1")[:2] == ["tcp dport 1 return", "tcp dport 2 return"]


@pytest.mark.parametrize(
    "rule",
    [
        {"ports": [{"port": "metrics"}]},
        {"ports": [{"port": 1, "endPort": 9}]},
        {"to": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}]},
        {"to": [{"podSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}]},
    ],
)
def test_what_is_not_translated_is_refused(rule: dict[str, Any]) -> None:
    with pytest.raises(TestbedError, match="translated"):
        ruleset([_policy(policyTypes=["Egress"], egress=[rule])], _PODS, _NAMESPACES)
