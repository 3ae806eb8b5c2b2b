"""When a source is woken, and which hosts it asks its coordinator for."""

from types import SimpleNamespace
from typing import Any

import pytest

from balanced_source.api import ProblemBoard
from balanced_source.coordinator import (
    CallCompleted,
    Event,
    HostsChanged,
    ParallelismChanged,
    RebalanceRequested,
    SourceChanged,
    SourceCoordinator,
)
from balanced_source_operator.controller.liveness import Pulses
from balanced_source_operator.resources.kinds import DRAIN_ANNOTATION
from balanced_source_operator.runtime.coordination import Coordination
from balanced_source_operator.settings import Settings
from support.builders import identity, make_spec, spark_application, spec_json
from support.world import kafka_source


class Scene:
    """A source whose applications the test knows; what the coordinator is told is noted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **by_host: dict[str, Any]) -> None:
        self.wakes = 0
        self.told: list[Event] = []
        self.observed = SimpleNamespace(by_host={n: [found] for n, found in by_host.items()})
        environment: Any = SimpleNamespace(api=None, settings=Settings(gate_deadline=60.0))
        unused: Any = None
        observed: Any = self.observed
        self.coordination = Coordination(
            environment,
            identity(),
            observed,
            unused,
            ProblemBoard(),
            pulses=Pulses(),
            wake=self._wake,
        )
        monkeypatch.setattr(self.coordination, "_handle", self._noted)

    def _wake(self) -> None:
        self.wakes += 1

    async def _noted(self, _: Any, event: Event) -> None:
        self.told.append(event)


def test_an_answer_of_a_server_wakes_the_source(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise it would be used at the next report, or not before the next look at everything."""
    scene = Scene(monkeypatch)

    scene.coordination._deliver(CallCompleted(1, None))

    assert scene.wakes == 1


@pytest.mark.asyncio
async def test_a_host_that_has_drained_comes_back_when_its_drain_attempt_is_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The attempt would take what the host gets for its own."""
    drain = spark_application("orders-h1-2", annotations={DRAIN_ANNOTATION: "true"})
    scene = Scene(monkeypatch, **{"0": spark_application("orders-1"), "1": drain})
    coordinator: SourceCoordinator[Any, Any] = SourceCoordinator(kafka_source(), hosts=("0",))
    application = {**spec_json()["application"], "hosts": {"count": 2}}
    desired: Any = SimpleNamespace(spec=make_spec(application=application), is_recalled=False)

    await scene.coordination._want_hosts(coordinator, desired)
    assert scene.told == []
    del scene.observed.by_host["1"]
    await scene.coordination._want_hosts(coordinator, desired)

    assert scene.told == [HostsChanged(("0", "1"))]


@pytest.mark.asyncio
async def test_only_what_has_changed_is_passed_on_in_a_fixed_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene, source = Scene(monkeypatch), kafka_source()
    coordinator: SourceCoordinator[Any, Any] = SourceCoordinator(source, parallelism=2)
    same: Any = SimpleNamespace(source=source, spec=make_spec(parallelism=2), is_recalled=False)

    async def no_hosts(*_: Any) -> None:
        """Hosts are another matter."""

    monkeypatch.setattr(scene.coordination, "_feed_hosts", no_hosts)
    await scene.coordination._feed(coordinator, same)
    assert scene.told == []

    other, spec = kafka_source("another"), make_spec(parallelism=3, rebalanceNonce=7)
    changed: Any = SimpleNamespace(source=other, spec=spec, is_recalled=False)
    answers = [CallCompleted(number, None) for number in (1, 2)]
    for answer in answers:
        scene.coordination._deliver(answer)
    await scene.coordination._feed(coordinator, changed)
    assert scene.told == [
        SourceChanged(other),
        ParallelismChanged(3),
        RebalanceRequested(nonce=7),
        *answers,
    ]


def test_a_report_is_that_of_the_host_whose_document_it_is_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    coordination = Scene(monkeypatch).coordination
    documents = [identity().on_host(host).documents.readers for host in ("0", "1")]
    assert [coordination.host_of_report(name) for name in documents] == ["0", None]

    coordination.coordinator = SourceCoordinator(kafka_source(), hosts=("0", "1"))

    assert [coordination.host_of_report(name) for name in documents] == ["0", "1"]
    assert coordination.host_of_report("another") is None
