"""An API server in memory, behind the operator's port.

`tests/contract/kubernetes` holds it to what the real one does.

Each process of a test takes a client of its own by `FakeKubernetes.client`, and can be made to die,
or to lose a request or a response, at a given call.
"""

import asyncio
import enum
import itertools
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias, TypeVar

from balanced_source_operator.kube.port import (
    ConflictError,
    KubernetesError,
    Manifest,
    RefusedError,
    UnknownKindError,
    collection_path,
    object_path,
)
from balanced_source_operator.resources.kinds import (
    BALANCED_SOURCE,
    CONFIG_MAP,
    EVENT,
    KUBEFLOW_APPLICATION,
    POD,
    POD_TEMPLATE,
    ROLE,
    ROLE_BINDING,
    SECRET,
    SERVICE_ACCOUNT,
    ResourceKind,
)
from support import virtual_time
from support.manifests import applied, merged

BUILT_IN: Final = (
    CONFIG_MAP,
    POD,
    POD_TEMPLATE,
    SECRET,
    SERVICE_ACCOUNT,
    EVENT,
    ROLE,
    ROLE_BINDING,
)
INSTALLED: Final = (*BUILT_IN, BALANCED_SOURCE, KUBEFLOW_APPLICATION)

WithStatus: Final = frozenset({BALANCED_SOURCE})
"""Kinds whose status is a subresource; that of Kubeflow's application is written by its own
operator, here a test."""

_DATA_KEY: Final = re.compile(r"[-._a-zA-Z0-9]+")

COLLECTION_DELAY: Final = 0.1
"""Seconds of virtual time until the garbage collector looks at an object that was written.

In real time it looks at once: how far a test has come after these seconds depends on the machine,
and a test whose objects have no owner must fail always, not only if it is slow.
"""

Key: TypeAlias = tuple[ResourceKind, str, str]
T = TypeVar("T")
Watcher: TypeAlias = Callable[[ResourceKind, str, Manifest], None]


class ProcessKilledError(BaseException):
    """The process that made the call is dead: no handler of it may live on."""


class Fault(enum.Enum):
    """What happens at a call."""

    KILLED = "killed"
    LOST_REQUEST = "lost request"
    LOST_RESPONSE = "lost response"


@dataclass
class FakeKubernetes:
    """Objects by kind, namespace and name. Everything that goes in or out is a copy.

    Attributes:
        objections: what dry runs answer, by kind; nothing if absent.
    """

    kinds: Iterable[ResourceKind] = INSTALLED
    clock: Callable[[], float] = lambda: 0.0
    objections: dict[ResourceKind, str] = field(default_factory=dict)
    objects: dict[Key, dict[str, Any]] = field(default_factory=dict)
    _applied: dict[Key, Manifest] = field(default_factory=dict)
    _denied: dict[tuple[str, ResourceKind], KubernetesError] = field(default_factory=dict)
    _watchers: list[Watcher] = field(default_factory=list)
    _revisions: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    def client(self, fault: Fault | None = None, *, at: int = 0) -> "FakeClient":
        """A client; with `fault` its call number `at` (from 1) goes wrong."""
        return FakeClient(self, fault, at)

    def watch(self, watcher: Watcher, lag: Callable[[], float] = lambda: 0.0) -> Callable[[], None]:
        """Tell `watcher` of everything that is there and that changes, on the running loop.

        Returns how to end it.

        Each news comes `lag` seconds late. Those of one kind come in their order, those of
        different kinds need not.
        """
        loop = asyncio.get_running_loop()
        last: dict[ResourceKind, float] = {}

        def tell(kind: ResourceKind, event: str, manifest: Manifest) -> None:
            last[kind] = max(last.get(kind, 0.0), loop.time() + lag())
            loop.call_at(last[kind], deliver, kind, event, manifest)

        def deliver(kind: ResourceKind, event: str, manifest: Manifest) -> None:
            if tell in self._watchers:
                watcher(kind, event, manifest)

        self._watchers.append(tell)
        for (kind, _, _), manifest in self.objects.items():
            tell(kind, "ADDED", copied(manifest))
        return lambda: self._watchers.remove(tell)

    def deny(
        self, error: KubernetesError, *, kind: ResourceKind, verbs: Iterable[str]
    ) -> Callable[[], None]:
        """Refuse calls of clients, as rights, webhooks and policies do, or do not answer them.

        Returns how to allow them again.
        """
        keys = [(verb, kind) for verb in verbs]
        self._denied.update(dict.fromkeys(keys, error))

        def allow() -> None:
            for key in keys:
                self._denied.pop(key, None)

        return allow

    def check_allowed(self, verb: str, kind: ResourceKind) -> None:
        """Refuse what is denied."""
        if (error := self._denied.get((verb, kind))) is None:
            return
        if isinstance(error, RefusedError):
            raise RefusedError(f"{kind.plural}: {error}", status=error.status)
        raise error.with_traceback(None)

    # --- what the API server does -----------------------------------------------------------------

    def find(self, kind: ResourceKind, namespace: str, name: str) -> Any:
        self._check(kind)
        return copied(self.objects.get((kind, namespace, name)))

    def select(
        self, kind: ResourceKind, namespace: str, selector: str = ""
    ) -> list[dict[str, Any]]:
        """Objects whose labels match all of ``key=value,key=value``."""
        self._check(kind)
        wanted = dict(pair.split("=", 1) for pair in selector.split(",") if pair)
        found = (m for (k, ns, _), m in self.objects.items() if k == kind and ns == namespace)
        return [
            copied(m) for m in found if wanted.items() <= m["metadata"].get("labels", {}).items()
        ]

    def add(self, kind: ResourceKind, manifest: Manifest) -> dict[str, Any]:
        """Create; a uid that is given stays (a real server makes one)."""
        self._check(kind)
        key = _key(kind, manifest)
        if bad := [
            member for member in manifest.get("data", {}) if not _DATA_KEY.fullmatch(member)
        ]:
            words = f'{kind.kind} "{key[2]}" is invalid: data[{bad[0]}]: Invalid value: "{bad[0]}"'
            raise RefusedError(f"{kind.plural} {key[2]}: {words}", status=422)
        if key in self.objects:
            raise ConflictError(f"{kind.plural} {key[2]} already exists")
        made = copied(manifest)
        if kind in WithStatus:
            made.pop("status", None)
        revision = next(self._revisions)
        stamp = datetime.fromtimestamp(self.clock(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        made["metadata"] = {
            "uid": f"made-{revision}",
            "generation": 1,
            **made["metadata"],
            "creationTimestamp": stamp,
        }
        made["metadata"]["resourceVersion"] = str(revision)
        self._store(key, "ADDED", made)
        return dict(copied(made))

    def put(
        self, kind: ResourceKind, manifest: Manifest, *, is_status: bool = False
    ) -> dict[str, Any]:
        """Replace. One that changes nothing leaves the resource version alone."""
        self._check(kind)
        key = _key(kind, manifest)
        known = self.objects.get(key)
        if known is None:
            raise ConflictError(f"{kind.plural} {key[2]} is gone")
        wanted_revision = manifest["metadata"].get(
            "resourceVersion", known["metadata"]["resourceVersion"]
        )
        if wanted_revision != known["metadata"]["resourceVersion"]:
            raise ConflictError(f"{kind.plural} {key[2]} was changed")
        made = copied(manifest)
        if kind in WithStatus and not is_status:
            made.pop("status", None)
            made |= {"status": known["status"]} if "status" in known else {}
        made["metadata"] = {
            **made["metadata"],
            **{f: known["metadata"][f] for f in _SERVERS if f in known["metadata"]},
        }
        if made != known:
            made["metadata"]["generation"] += made.get("spec") != known.get("spec")
            made["metadata"]["resourceVersion"] = str(next(self._revisions))
            self._store(key, "MODIFIED", made)
        return dict(copied(made))

    def edit(
        self, kind: ResourceKind, namespace: str, name: str, change: Mapping[str, Any]
    ) -> dict[str, Any]:
        """A merge patch, as a user or another controller sends it; the status goes with it."""
        known = self.objects[kind, namespace, name]
        return self.put(kind, merged(known, change), is_status=True)

    def apply(self, kind: ResourceKind, manifest: Manifest) -> dict[str, Any]:
        """Server-side apply by one manager that forces."""
        self._check(kind)
        key = _key(kind, manifest)
        before, self._applied[key] = self._applied.get(key, {}), copied(manifest)
        known = self.objects.get(key)
        if known is None:
            return self.add(kind, manifest)
        return self.put(kind, applied(known, before, manifest))

    def remove(self, kind: ResourceKind, namespace: str, name: str) -> None:
        """Delete an object and, as the garbage collector, everything that it owns."""
        gone = self.objects.pop((kind, namespace, name), None)
        if gone is None:
            return
        self._applied.pop((kind, namespace, name), None)
        self._tell(kind, "DELETED", gone)
        uid = gone["metadata"]["uid"]
        for key, manifest in list(self.objects.items()):
            if any(
                owner["uid"] == uid for owner in manifest["metadata"].get("ownerReferences", [])
            ):
                self.remove(*key)

    def _check(self, kind: ResourceKind) -> None:
        if kind not in tuple(self.kinds):
            raise UnknownKindError(f"the kind {kind.plural}.{kind.group} is not installed")

    def _store(self, key: Key, event: str, manifest: dict[str, Any]) -> None:
        self.objects[key] = manifest
        self._tell(key[0], event, manifest)
        if manifest["metadata"].get("ownerReferences"):
            delay = COLLECTION_DELAY if virtual_time.is_running() else 0.0
            asyncio.get_running_loop().call_later(delay, self._collect, key)

    def _collect(self, key: Key) -> None:
        """The garbage collector looks at an object: does any of its owners live?"""
        manifest = self.objects.get(key)
        owners = (
            {owner["uid"] for owner in manifest["metadata"].get("ownerReferences", [])}
            if manifest
            else set()
        )
        if owners and owners.isdisjoint(m["metadata"]["uid"] for m in self.objects.values()):
            self.remove(*key)

    def _tell(self, kind: ResourceKind, event: str, manifest: Manifest) -> None:
        for watcher in list(self._watchers):
            watcher(kind, event, copied(manifest))


class FakeClient:
    """One process's `KubernetesApi`.

    Attributes:
        calls: what was called, in order: verb, plural and name.
        is_dead: whether the process was killed; then every further call kills whoever makes it.
    """

    def __init__(self, server: FakeKubernetes, fault: Fault | None = None, at: int = 0) -> None:
        self._server = server
        self._fault = fault
        self._at = at
        self.calls: list[str] = []
        self.is_dead = False

    async def get(self, kind: ResourceKind, namespace: str, name: str) -> Manifest | None:
        object_path(kind, namespace, name)
        return await self._call("get", kind, name, lambda: self._server.find(kind, namespace, name))

    async def list(self, kind: ResourceKind, namespace: str, *, selector: str) -> list[Manifest]:
        collection_path(kind, namespace)
        return await self._call(
            "list", kind, "", lambda: list(self._server.select(kind, namespace, selector))
        )

    async def create(self, kind: ResourceKind, manifest: Manifest) -> Manifest:
        object_path(*_key(kind, manifest))
        return await self._call(
            "create", kind, _key(kind, manifest)[2], lambda: self._server.add(kind, manifest)
        )

    async def objection(self, kind: ResourceKind, manifest: Manifest) -> str | None:
        object_path(*_key(kind, manifest))
        return await self._call(
            "check", kind, _key(kind, manifest)[2], lambda: self._server.objections.get(kind)
        )

    async def replace(self, kind: ResourceKind, manifest: Manifest) -> Manifest:
        object_path(*_key(kind, manifest))
        return await self._call(
            "replace", kind, _key(kind, manifest)[2], lambda: self._server.put(kind, manifest)
        )

    async def apply(self, kind: ResourceKind, manifest: Manifest) -> Manifest:
        object_path(*_key(kind, manifest))
        return await self._call(
            "apply", kind, _key(kind, manifest)[2], lambda: self._server.apply(kind, manifest)
        )

    async def patch_status(
        self, kind: ResourceKind, namespace: str, name: str, status: Manifest
    ) -> Manifest | None:
        object_path(kind, namespace, name)

        def patch() -> Manifest | None:
            if self._server.find(kind, namespace, name) is None:
                return None
            return self._server.edit(kind, namespace, name, {"status": status})

        patched: Manifest | None = await self._call("patch status", kind, name, patch)
        return patched

    async def scale(
        self, kind: ResourceKind, namespace: str, name: str, *, before: int, after: int
    ) -> None:
        object_path(kind, namespace, name)

        def scale() -> None:
            found = self._server.find(kind, namespace, name)
            if found is None:
                raise RefusedError(f"{kind.plural} {name} not found", status=404)
            if found["spec"]["parallelism"] != before:
                raise ConflictError(
                    f"{kind.plural} {name}: the number of replicas is not {before} any more"
                )
            self._server.edit(kind, namespace, name, {"spec": {"parallelism": after}})

        await self._call("scale", kind, name, scale)

    async def delete(self, kind: ResourceKind, namespace: str, name: str, *, uid: str) -> None:
        object_path(kind, namespace, name)

        def delete() -> None:
            found = self._server.find(kind, namespace, name)
            if found is not None and found["metadata"]["uid"] == uid:
                self._server.remove(kind, namespace, name)

        await self._call("delete", kind, name, delete)

    async def _call(self, verb: str, kind: ResourceKind, name: str, do: Callable[[], T]) -> T:
        await asyncio.sleep(0)  # others run while a request is on its way
        self.calls.append(f"{verb} {kind.plural} {name}".strip())
        fault = self._fault if len(self.calls) == self._at else None
        if self.is_dead or fault is Fault.KILLED:
            self.is_dead = True
            raise ProcessKilledError
        if fault is Fault.LOST_REQUEST:
            raise KubernetesError("the API server does not answer: request lost")
        self._server.check_allowed(verb, kind)
        result = do()
        if fault is Fault.LOST_RESPONSE:
            raise KubernetesError("the API server does not answer: response lost")
        await asyncio.sleep(0)
        return result


_SERVERS: Final = ("uid", "resourceVersion", "generation", "creationTimestamp")
"""Metadata that the server sets."""


def copied(manifest: Any) -> Any:
    """By JSON: what comes out of an API server is JSON."""
    return json.loads(json.dumps(manifest))


def _key(kind: ResourceKind, manifest: Manifest) -> Key:
    return kind, str(manifest["metadata"]["namespace"]), str(manifest["metadata"]["name"])
