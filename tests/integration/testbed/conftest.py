"""One control plane and one broker for all tests of the testbed that only need "some" of each."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.control_plane import ControlPlane
from testbed.kafka import KafkaCluster


@pytest.fixture(scope="package")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with ControlPlane(
        tmp_path_factory.mktemp("control-plane"), crds=[Path(__file__).with_name("gauge.yaml")]
    ) as started:
        yield started


@pytest.fixture(scope="package")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    with KafkaCluster("main", tmp_path_factory.mktemp("kafka")) as started:
        yield started


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    return tmp_path / "run"
