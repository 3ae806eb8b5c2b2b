"""Collects the files of a support bundle.

What cannot be read is named, and leaves the others alone.
"""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

import yaml

from balanced_source.redaction import redacted, redacted_text
from balanced_source_adapters.version import installed_version
from balanced_source_operator.doctor import examine
from balanced_source_operator.doctor.cluster import OPERATOR_SELECTOR, of_operators
from balanced_source_operator.doctor.finding import ClusterApi, as_text
from balanced_source_operator.kube.port import KubernetesError, Manifest, UnknownKindError, named
from balanced_source_operator.resources.identity import Identity
from balanced_source_operator.resources.kinds import BALANCED_SOURCE, CHILDREN, EVENT, POD

TAIL: Final = 5000
"""Lines of each log."""

LIMIT: Final = 10 * 1024 * 1024
"""Bytes of each log."""


_CHILD: Final = re.compile(
    r"(enumerator|assignment|readers|documents|\d+|h\d+-[0-9a-f]{6})(-[a-z0-9.-]*)?\Z"
)
"""What follows the name of a source and a hyphen in the names of its objects and their pods."""


class BundleApi(ClusterApi, Protocol):
    """An API server that also has the logs of pods."""

    async def log(
        self, namespace: str, pod: str, container: str, *, previous: bool, tail: int, limit: int
    ) -> str:
        """Return the last lines of a container's log.

        Raises:
            KubernetesError: there is none, it may not be read, or the API server does not answer.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A file of the bundle.

    Attributes:
        path: in the bundle.
        text: its content; the reason if it is missing.
        is_missing: whether it could not be read.
    """

    path: str
    text: str
    is_missing: bool = False


async def collect(api: BundleApi, namespace: str, name: str) -> AsyncIterator[Item]:
    """Yield the files of a source's bundle.

    Raises:
        KubernetesError: the source itself cannot be read.
        StateError: there is no such source.
    """
    body = await named(api, BALANCED_SOURCE, namespace, name)
    yield _manifest("source.yaml", body)
    yield await _read("versions.yaml", lambda: _versions(api))
    yield await _read("doctor.txt", lambda: _doctor(api, namespace, name))
    yield await _read("events.yaml", lambda: _events(api, Identity.of(body)))
    async for item in _children(api, Identity.of(body)):
        yield item
    async for item in _operators(api):
        yield item


async def _read(path: str, read: Callable[[], Awaitable[str]]) -> Item:
    try:
        return Item(path=path, text=await read())
    except KubernetesError as refusal:
        return Item(path=path, text=str(refusal), is_missing=True)


def _manifest(path: str, body: Manifest) -> Item:
    return Item(path=path, text=_yaml(redacted(body)))


def _yaml(value: Any) -> str:
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True)


async def _versions(api: BundleApi) -> str:
    server = await api.ask("GET", "/version")
    return _yaml(
        {"balanced-source": installed_version(), "kubernetes": server.get("gitVersion", "unknown")}
    )


async def _doctor(api: BundleApi, namespace: str, name: str) -> str:
    lines = [as_text(diagnosis) async for diagnosis in examine(api, namespace, name)]
    return redacted_text("\n".join(lines) + "\n")


async def _events(api: BundleApi, identity: Identity) -> str:
    """Of the source and of its objects, also of those that are gone: applications and pods."""
    found = await api.list(EVENT, identity.namespace, selector="")
    sources = await _sources(api, identity)
    chosen = [event for event in found if _is_about(event, identity, sources)]
    return _yaml([redacted(event) for event in sorted(chosen, key=_moment)])


async def _sources(api: BundleApi, identity: Identity) -> frozenset[str]:
    """Return the names of all sources of the namespace, as far as they may be read."""
    try:
        bodies = await api.list(BALANCED_SOURCE, identity.namespace, selector="")
    except KubernetesError:
        bodies = []
    return frozenset({identity.name, *(str(body["metadata"]["name"]) for body in bodies)})


def _is_about(event: Manifest, identity: Identity, sources: frozenset[str]) -> bool:
    """Return whether an event is about the source or an object of it, by its name.

    Objects of `orders-eu` and of `orders-2` begin with `orders-`, too: the longest name counts.
    """
    about: Mapping[str, Any] = event.get("involvedObject") or event.get("regarding") or {}
    name = str(about.get("name", ""))
    if about.get("kind") == BALANCED_SOURCE.kind or name == identity.name:
        return name == identity.name
    longest = max((s for s in sources if name.startswith(f"{s}-")), key=len, default="")
    return longest == identity.name and _CHILD.match(name, len(longest) + 1) is not None


def _moment(event: Manifest) -> str:
    return str(event.get("lastTimestamp") or event.get("eventTime") or "")


async def _children(api: BundleApi, identity: Identity) -> AsyncIterator[Item]:
    for kind in CHILDREN:
        folder = f"objects/{kind.plural}.{kind.group}" if kind.group else f"objects/{kind.plural}"
        try:
            found = await api.list(kind, identity.namespace, selector=identity.selector)
        except UnknownKindError:
            continue  # the other Spark operator's
        except KubernetesError as refusal:
            yield Item(path=folder, text=str(refusal), is_missing=True)
            continue
        for child in found:
            yield _manifest(f"{folder}/{child['metadata']['name']}.yaml", child)
            if kind == POD:
                async for item in _logs(api, child):
                    yield item


async def _operators(api: BundleApi) -> AsyncIterator[Item]:
    try:
        found = await of_operators(api, POD.collection(""))
    except KubernetesError as refusal:
        yield Item(path="operator", text=str(refusal), is_missing=True)
        return
    if not found:
        text = f"no pod has the label {OPERATOR_SELECTOR}"
        yield Item(path="operator", text=text, is_missing=True)
    for pod in found:
        metadata = pod["metadata"]
        yield _manifest(f"operator/{metadata['namespace']}/{metadata['name']}.yaml", pod)
        async for item in _logs(api, pod):
            yield item


async def _logs(api: BundleApi, pod: Manifest) -> AsyncIterator[Item]:
    metadata, status = pod["metadata"], pod.get("status") or {}
    namespace, name = str(metadata["namespace"]), str(metadata["name"])
    for container in (
        *status.get("initContainerStatuses", ()),
        *status.get("containerStatuses", ()),
    ):
        for previous in (False, True) if container.get("restartCount", 0) else (False,):
            yield await _log(api, namespace, name, str(container["name"]), previous=previous)


async def _log(api: BundleApi, namespace: str, pod: str, container: str, *, previous: bool) -> Item:
    path = f"logs/{namespace}/{pod}/{container}{'.previous' if previous else ''}.log"

    async def read() -> str:
        return redacted_text(
            await api.log(namespace, pod, container, previous=previous, tail=TAIL, limit=LIMIT)
        )

    return await _read(path, read)
