from pathlib import Path

import pytest

from testbed.cluster import clean, read_manifest
from testbed.errors import TestbedError
from testbed.etcd_data import EtcdData
from testbed.images import spark_image_name
from testbed.spark_operator import driver_role


def run_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    for name in (
        "logs/etcd.log",
        "node/logs/p/c.0.log",
        "node/pods/p/home/x",
        "kafka/main/data",
        "testbed.json",
    ):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    return folder


def test_a_stopped_cluster_leaves_nothing_or_only_logs(tmp_path: Path) -> None:
    folder = run_folder(tmp_path)
    clean(folder, keep_logs=True)
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert files == {"logs/etcd.log", "node/logs/p/c.0.log"}
    clean(folder, keep_logs=False)
    assert not folder.exists()


def test_etcds_data_go_from_memory_too(tmp_path: Path) -> None:
    memory, folder = tmp_path / "memory", tmp_path / "run"
    memory.mkdir()
    folder.mkdir()
    data = EtcdData(folder, memory)
    (data.create() / "member").mkdir()
    assert len(list(memory.iterdir())) == 1
    clean(folder, keep_logs=False)
    assert list(memory.iterdir()) == []


def test_without_a_memory_file_system_etcd_uses_the_run_folder(tmp_path: Path) -> None:
    assert EtcdData(tmp_path, tmp_path / "none").create() == tmp_path / "etcd-data"


def test_a_folder_without_a_testbed_is_reported(tmp_path: Path) -> None:
    with pytest.raises(TestbedError, match="no testbed in"):
        read_manifest(tmp_path)


def test_drivers_may_not_create_network_policies() -> None:
    role = next(item for item in driver_role("ns") if item["kind"] == "Role")
    assert {resource for rule in role["rules"] for resource in rule["resources"]} == {
        "pods",
        "configmaps",
        "persistentvolumeclaims",
        "services",
    }


def test_image_names() -> None:
    assert spark_image_name("4.2.0") == "balanced-source/spark:4.2.0"
