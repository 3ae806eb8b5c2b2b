"""NetworkPolicies as rules of nftables, as a network plug-in of a cluster would enforce them.

A packet between pods of a node only crosses the bridge; what goes to the node, or to a pod by a
Service's address, is routed. So the same rules hang in both places. In the second one they see the
port behind a Service, as those of most plug-ins do.

Rules drop what begins a connection, and leave answers alone. They are for IPv4, and for TCP; UDP is
stopped on its way out only, because a bridge cannot tell a question that comes in from an answer.
"""

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from testbed.errors import TestbedError

TABLE: Final = "policies"
"""Name of the tables, which hold nothing else."""

_BEGINNINGS: Final = {
    "Ingress": ("tcp flags syn / syn,ack",),
    "Egress": ("tcp flags syn / syn,ack", "meta l4proto udp"),
}
_FAMILIES: Final = {"bridge": ("forward",), "inet": ("forward", "input")}
_FIELDS: Final = {
    "Ingress": ("ingress", "from", "daddr", "saddr"),
    "Egress": ("egress", "to", "saddr", "daddr"),
}
"""Direction → its fields in a policy, the pod's place in a packet, and that of the other end."""

Object = Mapping[str, Any]


def ruleset(
    policies: Sequence[Object], pods: Sequence[Object], namespaces: Sequence[Object]
) -> str:
    """Return what ``nft -f -`` has to read; it replaces the tables of an earlier one.

    Args:
        policies: all NetworkPolicies.
        pods: all pods; those without an address are left out.
        namespaces: all namespaces, whose labels policies may select.

    Raises:
        TestbedError: a policy uses something that is not translated.
    """
    world = _World(pods, namespaces)
    chains = [chain for direction in _FIELDS for chain in _chains(direction, policies, world)]
    lines: list[str] = []
    for family, hooks in _FAMILIES.items():
        # a table that is not there cannot be deleted
        lines += [f"table {family} {TABLE}", f"delete table {family} {TABLE}"]
        lines += [f"table {family} {TABLE} {{"]
        lines += [line for chain in chains for line in chain.lines()]
        lines += [line for hook in hooks for line in _hook(hook, chains)]
        lines += ["}"]
    return "\n".join((*lines, ""))


class _World:
    """Pods by their addresses, and labels of namespaces."""

    def __init__(self, pods: Sequence[Object], namespaces: Sequence[Object]) -> None:
        self._pods = [pod for pod in pods if pod.get("status", {}).get("podIP")]
        self._labels = {n["metadata"]["name"]: n["metadata"].get("labels", {}) for n in namespaces}

    def selected(self, policy: Object) -> set[str]:
        """Addresses of the pods that a policy is about."""
        chosen = {"podSelector": policy["spec"].get("podSelector", {})}
        return set(self.peers(chosen, policy["metadata"]["namespace"]))

    def peers(self, peer: Object, namespace: str) -> Iterator[str]:
        """Addresses of a peer of a policy in a namespace."""
        if block := peer.get("ipBlock"):
            if block.get("except"):
                raise TestbedError("ipBlock.except is not translated")
            yield str(ipaddress.ip_network(block["cidr"]))
            return
        for pod in self._pods:
            of_pod = pod["metadata"]["namespace"]
            if "namespaceSelector" in peer:
                is_there = _matches(peer["namespaceSelector"], self._labels.get(of_pod, {}))
            else:
                is_there = of_pod == namespace
            if is_there and _matches(
                peer.get("podSelector", {}), pod["metadata"].get("labels", {})
            ):
                yield pod["status"]["podIP"]


class _Chain:
    """What a pod may do in one direction: all that any of its policies allows."""

    def __init__(self, direction: str, address: str) -> None:
        self.own, self._other = _FIELDS[direction][2:]
        self.address = address
        self._dropped = _BEGINNINGS[direction]
        self.name = f"{direction.lower()}_{address.replace('.', '_')}"
        self._allowed: list[str] = []

    def allow(self, addresses: Sequence[str] | None, ports: Sequence[Object]) -> None:
        """Allow these ports of these addresses; None and empty mean all."""
        where = [""] if addresses is None else [f"ip {self._other} {a} " for a in addresses]
        what = [_port(port) for port in ports] or ["meta l4proto { tcp, udp }"]
        self._allowed += [f"{place}{port}" for place in where for port in what]

    def lines(self) -> Iterator[str]:
        yield f"  chain {self.name} {{"
        # not `accept`, which would spare the packet the rules of the pod at its other end
        yield from (f"    {rule} return" for rule in self._allowed)
        yield from (f"    {beginning} counter drop" for beginning in self._dropped)
        yield "  }"


def _chains(direction: str, policies: Sequence[Object], world: _World) -> Iterator[_Chain]:
    field, peers_field = _FIELDS[direction][:2]
    chains: dict[str, _Chain] = {}
    for policy in policies:
        spec, namespace = policy["spec"], policy["metadata"]["namespace"]
        if direction not in spec.get("policyTypes", ["Ingress"]):
            continue
        for address in sorted(world.selected(policy)):
            chain = chains.setdefault(address, _Chain(direction, address))
            for rule in spec.get(field) or []:
                peers = rule.get(peers_field)
                found = sorted({a for peer in peers or [] for a in world.peers(peer, namespace)})
                chain.allow(found if peers else None, rule.get("ports") or [])
    yield from chains.values()


def _hook(hook: str, chains: Sequence[_Chain]) -> Iterator[str]:
    yield f"  chain {hook} {{"
    yield f"    type filter hook {hook} priority 10;"
    yield from (f"    ip {chain.own} {chain.address} jump {chain.name}" for chain in chains)
    yield "  }"


def _port(port: Object) -> str:
    number, protocol = port.get("port"), port.get("protocol", "TCP").lower()
    if number is None:
        return f"meta l4proto {protocol}"
    if not isinstance(number, int) or "endPort" in port or protocol not in ("tcp", "udp"):
        raise TestbedError(f"port {dict(port)} of a NetworkPolicy is not translated")
    return f"{protocol} dport {number}"


def _matches(selector: Object, labels: Mapping[str, str]) -> bool:
    if selector.get("matchExpressions"):
        raise TestbedError("matchExpressions of a NetworkPolicy are not translated")
    wanted = selector.get("matchLabels") or {}
    return all(labels.get(key) == value for key, value in wanted.items())
