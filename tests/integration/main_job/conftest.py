"""A real API server and a real broker; the operator as a process; a namespace for each test."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.source_scene import SourceScene as World
from support.story.operator_process import OperatorProcess
from testbed.builds import SPARK_OPERATOR_FILES, Builder
from testbed.control_plane import ControlPlane
from testbed.kafka import KafkaCluster
from testbed.versions import CHECKOUT

FAST = {"RESYNC_SECONDS": "5", "SAVE_INTERVAL_SECONDS": "1"}
_names = itertools.count(1)


@pytest.fixture(scope="package")
def spark_crds() -> Path:
    """Custom resources of Kubeflow's operator."""
    return Builder().ensure(SPARK_OPERATOR_FILES)[SPARK_OPERATOR_FILES] / "crds"


@pytest.fixture(scope="package")
def control_plane(
    tmp_path_factory: pytest.TempPathFactory, spark_crds: Path
) -> Iterator[ControlPlane]:
    crds = [spark_crds, CHECKOUT / "crds"]
    with ControlPlane(tmp_path_factory.mktemp("control-plane"), crds=crds) as started:
        yield started


@pytest.fixture(scope="package")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    with KafkaCluster("main", tmp_path_factory.mktemp("kafka")) as started:
        yield started


@pytest.fixture(scope="package")
def operator(control_plane: ControlPlane) -> Iterator[OperatorProcess]:
    """The operator; a test that kills it starts it again."""
    process = OperatorProcess(control_plane, settings=FAST)
    process.start()
    yield process
    process.stop()


@pytest.fixture
def world(
    control_plane: ControlPlane, kafka: KafkaCluster, operator: OperatorProcess
) -> Iterator[World]:
    assert "serving" in operator.log
    namespace = f"test-{next(_names)}"
    made = World(control_plane, kafka, namespace)
    yield made
    made.close()
