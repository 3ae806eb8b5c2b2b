from pathlib import Path

import pytest

from testbed.process_node import status
from testbed.process_node.addresses import AddressPool
from testbed.process_node.config import NodeConfig
from testbed.process_node.images import ProcessImage, UnknownImageError, find_image

IMAGE = ProcessImage(
    binds={"/opt/spark": "/venv"},
    env={"A": "1"},
    entrypoint=("/run",),
    path=("/bin",),
    visible=("/checkout",),
)


def config(tmp_path: Path) -> NodeConfig:
    return NodeConfig(
        name="n",
        server="https://127.0.0.1:1",
        token="t",  # noqa: S106
        ca_file=tmp_path / "ca",
        certificate=tmp_path / "crt",
        key=tmp_path / "key",
        port=1,
        directory=tmp_path,
        path="/bin",
        images={"image:1": IMAGE},
    )


def test_the_configuration_survives_its_file_which_only_its_owner_reads(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    config(tmp_path).write(file)
    assert NodeConfig.read(file) == config(tmp_path)
    assert file.stat().st_mode & 0o777 == 0o600


def test_an_unknown_image_is_reported_with_the_known_ones() -> None:
    assert find_image({"image:1": IMAGE}, "image:1") is IMAGE
    with pytest.raises(UnknownImageError, match=r"no image 'nginx'; it has: image:1"):
        find_image({"image:1": IMAGE}, "nginx")


def pod(**states: status.State) -> status.PodStatus:
    containers = {
        name: status.ContainerStatus(name=name, image="i", state=state)
        for name, state in states.items()
    }
    return status.PodStatus(
        ip="127.64.0.2", containers=containers, init_containers={}, phase="Running"
    )


def conditions(document: dict[str, object]) -> dict[str, str]:
    return {entry["type"]: entry["status"] for entry in document["conditions"]}


def test_a_pod_is_ready_when_all_its_containers_run() -> None:
    running = status.running("t")
    assert conditions(pod(a=running, b=running).document())["Ready"] == "True"
    assert (
        conditions(pod(a=running, b=status.waiting("CrashLoopBackOff")).document())["Ready"]
        == "False"
    )


def test_the_time_of_a_condition_is_that_of_its_last_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    times = iter([f"t{number}" for number in range(20)])
    monkeypatch.setattr(status, "timestamp", lambda: next(times))
    one = pod(a=status.running("t"))
    before = {entry["type"]: entry["lastTransitionTime"] for entry in one.document()["conditions"]}
    one.containers["a"].state = status.terminated(1, "t", "process://1")
    after = {entry["type"]: entry["lastTransitionTime"] for entry in one.document()["conditions"]}
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"ContainersReady", "Ready"}


@pytest.mark.parametrize(("returncode", "code"), [(0, 0), (3, 3), (-9, 137), (-15, 143)])
def test_a_death_by_signal_has_the_shells_exit_code(returncode: int, code: int) -> None:
    assert status.exit_code(returncode) == code


def test_pods_of_an_earlier_run_of_the_node_have_failed() -> None:
    lost = status.lost_with_the_node(pod(a=status.running("t")).document())
    assert (lost["phase"], lost["reason"]) == ("Failed", "NodeRestart")
    assert lost["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 137
    assert "running" not in lost["containerStatuses"][0]["state"]


def test_two_nodes_have_no_address_in_common_and_used_ones_come_back_last() -> None:
    one, other = AddressPool(), AddressPool()
    try:
        first = one.take()
        one.give_back(first)
        taken = [one.take() for _ in range(253)]
        assert taken[-1] == first
        assert other.take() not in taken
        with pytest.raises(IndexError):
            one.take()
    finally:
        one.close()
        other.close()
