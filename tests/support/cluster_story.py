"""The operator's real runtime on a fake API server, in virtual time.

One source from its creation to its deletion.

Nothing of the product is replaced but the two ends: the API server (`FakeKubernetes`) and the
broker. The reader host is the product's own state machine; the Spark operator is three lines that
say RUNNING and make a pod.
"""

import asyncio
import contextlib
from collections.abc import Callable, Container, Hashable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any, Final

from balanced_source.api import CallFailure, SplitId
from balanced_source.coordinator import state_codec
from balanced_source.documents import assignment as assignment_document
from balanced_source.documents import increments
from balanced_source.documents.assignment import Assignment
from balanced_source.documents.parts import assemble, part_names, parts_of
from balanced_source.documents.storage import FIRST_HOST, Names, pack
from balanced_source.errors import InvalidSpecError, StateError
from balanced_source_operator.metrics import Metrics
from balanced_source_operator.page.board import StatusBoard
from balanced_source_operator.resources.documents import blob_of
from balanced_source_operator.resources.kinds import (
    BALANCED_SOURCE,
    CHILDREN,
    CONFIG_MAP,
    EVENT,
    HOST_LABEL,
    KUBEFLOW_APPLICATION,
    NAME_LABEL,
    POD,
    SERVICE_ACCOUNT,
    ResourceKind,
)
from balanced_source_operator.runtime import supervisor
from balanced_source_operator.runtime.call_pool import Lane
from balanced_source_operator.runtime.environment import Environment
from balanced_source_operator.runtime.restart_slots import RestartSlots
from balanced_source_operator.runtime.served_sources import ServedSources
from balanced_source_operator.settings import Settings
from balanced_source_operator.spec import parse_spec
from support.builders import source_body, source_of, spec_json
from support.fake_kubernetes import FakeClient, FakeKubernetes, Fault, ProcessKilledError
from support.virtual_time import clock
from support.world import UID, Broker, Driver

NAMESPACE: Final = "default"
DEADLINE: Final = 600.0
"""Virtual seconds until a condition that does not come true fails the test."""

SPEC: Final = spec_json(
    source={
        "kafka": {
            "clusters": [{"name": "main", "bootstrapServers": "broker:9092"}],
            "subscription": {"topics": ["orders"]},
            "discovery": {"interval": "1s"},
        }
    },
)


class BrokerPool:
    """Executes the enumerator's calls at once, at the made-up broker. See `CallPool`."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def run(
        self, lane: Lane, function: Callable[[Any], Any], call: Any, *, server: str = ""
    ) -> Any:
        result = self._broker.execute(call)
        if isinstance(result, CallFailure):
            raise result.error
        return result

    def forget(self, owner: Hashable) -> None:
        """Nothing is remembered."""


class OperatorUnderTest:
    """One operator process: what the handlers do, without kopf."""

    def __init__(
        self,
        server: FakeKubernetes,
        broker: Broker,
        client: FakeClient,
        name: str = "operator-1",
        lag: Callable[[], float] = lambda: 0.0,
        *,
        instance: str = "",
        namespaces: Container[str] = (NAMESPACE,),
    ) -> None:
        self.client = client
        self.restarts = RestartSlots()
        self.board = StatusBoard(clock)
        environment = Environment(
            api=client,
            settings=Settings(identity=name, instance=instance),
            pool=BrokerPool(broker),
            metrics=Metrics(),
            restarts=self.restarts,
            audience=self.board,
        )
        self.supervisor = supervisor.Supervisor(environment)
        self.sources = ServedSources(self.supervisor, namespaces)
        self._unwatch = server.watch(self._on_event, lag)

    def _on_event(self, kind: ResourceKind, event: str, manifest: Mapping[str, Any]) -> None:
        if kind == BALANCED_SOURCE:
            self.sources.on_source(event, manifest)
        elif kind in CHILDREN:
            self.supervisor.on_child(kind, event, manifest)

    async def stop(self) -> None:
        self._unwatch()
        await self.supervisor.stop()


class Documents(MutableMapping[str, str]):
    """A driver's view of its documents: `support.world.Store`, in ConfigMaps."""

    def __init__(self, server: FakeKubernetes, host: str = FIRST_HOST) -> None:
        self._server = server
        self._names = Names.of("orders", host, uid=UID)
        self._host = host

    @property
    def reports(self) -> MutableMapping[str, str]:
        return self

    @property
    def assignment(self) -> str | None:
        return self.document(self._names.assignment)

    def text(self, suffix: str) -> str | None:
        return self.document(f"orders-{suffix}")

    def document(self, name: str) -> str | None:
        found = self._server.find(CONFIG_MAP, NAMESPACE, name)
        try:
            return self.whole(found) if found is not None else None
        except StateError:
            return None

    def whole(self, manifest: Mapping[str, Any]) -> str:
        """The document that a ConfigMap and its parts hold, as if it had been small."""
        head, names = blob_of(manifest), part_names(manifest["metadata"]["name"])
        found = [
            self._server.find(CONFIG_MAP, NAMESPACE, names[ref.number]) for ref in parts_of(head)
        ]
        content = assemble(head, [blob_of(part or {}) for part in found])
        if content.base is None:
            return content.document
        return assignment_document.encode(increments.decode(content, source=UID), source=UID)

    def __getitem__(self, host: str) -> str:
        if (text := self.document(self._names.readers)) is None:
            raise KeyError(host)
        return text

    def __setitem__(self, host: str, text: str) -> None:
        if self._server.find(CONFIG_MAP, NAMESPACE, self._names.readers) is not None:
            blob = pack(text)
            written = {"data": dict(blob.data) or None, "binaryData": dict(blob.binary) or None}
            self._server.edit(CONFIG_MAP, NAMESPACE, self._names.readers, written)

    def __delitem__(self, host: str) -> None:
        raise NotImplementedError

    def __iter__(self) -> Iterator[str]:
        return iter([self._host] if self.document(self._names.readers) is not None else [])

    def __len__(self) -> int:
        return len(list(iter(self)))


@dataclass
class Story:
    """The world of one test. `fault` hits the first operator process at its call number `at`.

    Attributes:
        deaths: the call at which each successor of a killed operator is killed in its turn.
        lag: seconds that the operator hears of things late.
        seen: epochs of the assignment document, as they were written.
        applications: names of SparkApplications, as they were made.
        broken: rules that were seen broken while the story went on.
        metadata: what the ConfigMap of `clustersFrom` holds, for a source that has one.
    """

    fault: Fault | None = None
    at: int = 0
    deaths: list[int] = field(default_factory=list)
    lag: Callable[[], float] = lambda: 0.0
    server: FakeKubernetes = field(init=False)
    broker: Broker = field(default_factory=Broker)
    seen: list[tuple[int, int]] = field(default_factory=list)
    applications: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    metadata: str | None = None
    operators: list[OperatorUnderTest] = field(default_factory=list)
    restarts: int = 0

    def __post_init__(self) -> None:
        self.server = FakeKubernetes(clock=clock)
        self._source: Any = None
        self.documents = Documents(self.server)
        self._tampered: set[str] = set()
        # The same by duck typing
        self.driver: Driver = Driver(self.documents, self.broker)  # type: ignore[arg-type]

    # --- the cast ---------------------------------------------------------------------------------

    async def begin(self, *, operators: int = 1, **spec: Any) -> None:
        """A topic, a source and one operator (or several, by mistake)."""
        asyncio.get_running_loop().set_exception_handler(self._on_unhandled)
        self.server.watch(self._observe)
        self.broker.create("main", "orders", range(8), end=5)
        self.server.add(SERVICE_ACCOUNT, {"metadata": {"namespace": NAMESPACE, "name": "spark"}})
        body = source_body(**{**SPEC, **spec})
        body["metadata"]["uid"] = UID
        self.server.add(BALANCED_SOURCE, body)
        for number in range(operators):
            self.start_operator(
                self.server.client(self.fault, at=self.at), f"operator-{number + 1}"
            )

    def start_operator(
        self,
        client: FakeClient | None = None,
        name: str = "operator-1",
        instance: str = "",
        namespaces: Container[str] = (NAMESPACE,),
    ) -> OperatorUnderTest:
        client = client or self.server.client()
        made = OperatorUnderTest(
            self.server,
            self.broker,
            client,
            name,
            self.lag,
            instance=instance,
            namespaces=namespaces,
        )
        self.operators.append(made)
        return made

    async def end(self) -> None:
        for operator in self.operators:
            await operator.stop()

    async def until(self, condition: Callable[[], Any], what: str) -> None:
        """Let time pass until something is so; an operator that was killed is started again."""
        deadline = clock() + DEADLINE
        while not condition():
            if clock() > deadline:
                raise TimeoutError(f"{what}; status {self.status}; events {self.events}")
            await asyncio.sleep(0.25)
            await self._restart_the_dead()

    async def _restart_the_dead(self) -> None:
        for operator in [o for o in self.operators if o.client.is_dead]:
            await operator.stop()
            self.operators.remove(operator)
            self.restarts += 1
            next_fault = Fault.KILLED if self.deaths else None
            self.start_operator(
                self.server.client(next_fault, at=self.deaths.pop(0) if self.deaths else 0)
            )

    # --- what is seen -----------------------------------------------------------------------------

    @property
    def status(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.server.find(BALANCED_SOURCE, NAMESPACE, "orders") or {}
        status: Mapping[str, Any] = found.get("status", {})
        return status

    @property
    def assignment(self) -> Assignment | None:
        text = self.documents.assignment
        return assignment_document.decode(text, source=UID) if text is not None else None

    @property
    def owners(self) -> Mapping[SplitId, int]:
        return self.assignment.owners if self.assignment is not None else {}

    @property
    def events(self) -> list[str]:
        return [manifest["reason"] for manifest in self.server.select(EVENT, NAMESPACE)]

    def sample(self, name: str, **more: str) -> float | None:
        """Return what the first operator serves as a metric of the source; None for no series."""
        registry = self.operators[0].supervisor._env.metrics.registry
        labels = {"namespace": NAMESPACE, "source": "orders", **more}
        return registry.get_sample_value(f"balanced_source_{name}", labels)

    def children(self) -> list[str]:
        """All but events and what was there before."""
        kept = [
            m
            for (kind, _, _), m in self.server.objects.items()
            if kind not in (EVENT, SERVICE_ACCOUNT)
        ]
        return sorted(
            f"{m['kind']} {m['metadata']['name']}"
            for m in kept
            if m["kind"] != BALANCED_SOURCE.kind
        )

    def _on_unhandled(self, _: asyncio.AbstractEventLoop, context: Mapping[str, Any]) -> None:
        """What no one caught; a process that was killed leaves such things behind."""
        if not isinstance(context.get("exception"), ProcessKilledError):
            self.broken.append(f"{context.get('message')}: {context.get('exception')!r}")

    def _observe(self, kind: ResourceKind, event: str, manifest: Mapping[str, Any]) -> None:
        """Check at each write what must hold at each write."""
        name = manifest["metadata"]["name"]
        if kind == KUBEFLOW_APPLICATION and event == "ADDED":
            self.applications.append(name)
            there = [m["metadata"] for m in self.server.select(KUBEFLOW_APPLICATION, NAMESPACE)]
            if len({m["labels"].get(HOST_LABEL) for m in there}) < len(there):
                self.broken.append("two applications of one host at once")
        if kind == CONFIG_MAP and name == "orders-assignment" and event != "DELETED":
            self._observe_assignment(manifest)

    def _observe_assignment(self, manifest: Mapping[str, Any]) -> None:
        try:
            text = self.documents.whole(manifest)
            found = assignment_document.decode(text, source=UID)
        except StateError:
            return  # someone's edit
        if text in self._tampered:
            return
        self.seen.append((found.lineage, found.epoch))
        if self.seen != sorted(self.seen):
            self.broken.append(f"an older epoch was published: {self.seen[-2:]}")
        stored = self.documents.text("enumerator")
        spec = self.server.find(BALANCED_SOURCE, NAMESPACE, "orders")
        if stored is not None and spec is not None:
            with contextlib.suppress(InvalidSpecError):
                self._source = source_of(parse_spec(spec["spec"]), self.metadata)
            state = state_codec.decode(stored, self._source, uid=UID).coordinator
            if (state.lineage, state.epoch) < (found.lineage, found.epoch):
                self.broken.append(f"epoch {found.epoch} was published before it was stored")

    # --- what others do ---------------------------------------------------------------------------

    def tamper(self, name: str, text: str) -> None:
        """Let someone else write a document.

        The rules for what the operator publishes ignore this text.
        """
        self._tampered.add(text)
        self.server.edit(CONFIG_MAP, NAMESPACE, name, {"data": {"document.json": text}})

    def patch(self, **spec: Any) -> None:
        """The user changes the source."""
        self.server.edit(BALANCED_SOURCE, NAMESPACE, "orders", {"spec": spec})

    async def launched(self, name: str = "orders-1") -> None:
        """The Spark operator runs the application: a driver pod, then the state."""
        await self.until(
            lambda: self.server.find(KUBEFLOW_APPLICATION, NAMESPACE, name), f"application {name}"
        )
        application = self.server.find(KUBEFLOW_APPLICATION, NAMESPACE, name)
        assert application is not None
        labels = {
            NAME_LABEL: "orders",
            "spark-role": "driver",
            "sparkoperator.k8s.io/app-name": name,
        }
        owner = {k: application["metadata"][k] for k in ("name", "uid")}
        metadata = {
            "namespace": NAMESPACE,
            "name": f"{name}-driver",
            "labels": labels,
            "ownerReferences": [owner],
        }
        self.server.add(POD, {"kind": "Pod", "metadata": metadata, "status": {"phase": "Running"}})
        running = {"status": {"applicationState": {"state": "RUNNING"}}}
        self.server.edit(KUBEFLOW_APPLICATION, NAMESPACE, name, running)

    async def adopted(self, *, parallelism: int, splits: int) -> None:
        """The driver runs micro-batches until the operator knows that it reads so many splits."""

        def has_adopted() -> bool:
            self.driver.see_assignment()
            self.driver.batch()
            self.driver.report()
            held = self.driver.host.durable
            status = self.status
            is_there = held.parallelism == parallelism and len(held.owners) == splits
            return is_there and status.get("acknowledgedEpoch") == status.get("epoch") == held.epoch

        await self.until(has_adopted, f"{splits} splits read by {parallelism} readers")
