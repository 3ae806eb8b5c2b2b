"""A real API server and its HPA controller, a broker, our operator, a Prometheus, and KEDA.

KEDA's number reaches the HPA through KEDA's own metrics server. Drivers are stand-ins, which report
the lag that a test sets: operator → Prometheus → KEDA → HPA → parallelism → driver.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from keda.scaled_object import ScaledObject
from support.source_scene import SourceScene
from support.story.operator_process import OperatorProcess
from testbed.builds import KEDA_FILES, SPARK_OPERATOR_FILES, Builder
from testbed.control_plane import ControlPlane
from testbed.kafka import KafkaCluster
from testbed.keda import Keda
from testbed.ports import LOOPBACK, PortPool
from testbed.prometheus import Prometheus
from testbed.versions import CHECKOUT

_names = itertools.count(1)


@pytest.fixture(scope="package")
def ports() -> Iterator[PortPool]:
    pool = PortPool()
    yield pool
    pool.close()


@pytest.fixture(scope="package")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    built = Builder().ensure(SPARK_OPERATOR_FILES, KEDA_FILES)
    crds = [
        built[SPARK_OPERATOR_FILES] / "crds",
        CHECKOUT / "crds",
        built[KEDA_FILES] / "config" / "crd" / "bases",
    ]
    with ControlPlane(tmp_path_factory.mktemp("control-plane"), crds=crds) as started:
        yield started


@pytest.fixture(scope="package")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    with KafkaCluster("main", tmp_path_factory.mktemp("kafka")) as started:
        yield started


@pytest.fixture(scope="package")
def prometheus(control_plane: ControlPlane, ports: PortPool) -> Iterator[Prometheus]:
    """It scrapes the operator, which runs as long as it does."""
    port = ports.take()
    settings = {"RESYNC_SECONDS": "5", "SAVE_INTERVAL_SECONDS": "1", "METRICS_PORT": str(port)}
    operator = OperatorProcess(control_plane, settings=settings)
    operator.start()
    server = Prometheus(
        control_plane.supervisor,
        control_plane.run_dir / "prometheus",
        ports=ports,
        target=f"{LOOPBACK}:{port}",
    )
    with server:
        yield server
    operator.stop()


@pytest.fixture(scope="package")
def keda(control_plane: ControlPlane, ports: PortPool) -> Iterator[Keda]:
    with Keda(control_plane, ports=ports) as started:
        yield started


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A source in a namespace of its own, and the ScaledObject of the examples for it."""

    source: SourceScene
    scaled: ScaledObject


@pytest.fixture
def scene(
    control_plane: ControlPlane, kafka: KafkaCluster, prometheus: Prometheus, keda: Keda
) -> Iterator[Scene]:
    assert keda.is_available()
    namespace = f"keda-{next(_names)}"
    source = SourceScene(control_plane, kafka, namespace)
    scaled = ScaledObject(control_plane, namespace, prometheus.url)
    yield Scene(source=source, scaled=scaled)
    scaled.delete()
    source.close()
