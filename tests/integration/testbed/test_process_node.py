"""The node without containers, once with a root per container and once with rewritten paths."""

import os
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from testbed.control_plane import ControlPlane
from testbed.errors import CommandError
from testbed.images import HOST
from testbed.node_process import NodeProcess
from testbed.ports import PortPool
from testbed.process_node.images import ProcessImage
from testbed.process_node.namespaces import mount_namespace_command
from testbed.waiting import wait_until

pytestmark = pytest.mark.integration
TIMEOUT = 20.0
PACKAGED = "packaged:1"
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


class Bed:
    """A control plane with a node, and what the tests do with pods."""

    def __init__(self, control_plane: ControlPlane, node: NodeProcess) -> None:
        self.api = control_plane
        self.node = node

    def config_map(self, name: str, **data: str) -> None:
        metadata = {"name": name, "namespace": "default"}
        self.api.apply(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
        )

    def run(self, name: str, script: str, *, policy: str = "Never", **container: Any) -> None:
        """Create a pod of one container that runs a shell script.

        `volumes` and `spec` go to the pod.
        """
        volumes = container.pop("volumes", {})
        spec = container.pop("spec", {})
        mounts = [{"name": volume, "mountPath": path} for volume, (path, _) in volumes.items()]
        main = {
            "name": "main",
            "image": HOST,
            "command": ["sh", "-c", script],
            "volumeMounts": mounts,
        }
        pod = {
            "restartPolicy": policy,
            "containers": [main | container],
            "volumes": [{"name": volume, **source} for volume, (_, source) in volumes.items()],
        }
        metadata = {"name": name, "namespace": "default", "labels": {"test": name}}
        self.api.apply(
            {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod | spec}
        )

    def status(self, name: str) -> dict[str, Any]:
        pod = self.api.get("pods", name)
        return pod["status"] if pod else {}

    def wait(self, name: str, *phases: str) -> dict[str, Any]:
        wait_until(
            lambda: self.status(name).get("phase") in phases, TIMEOUT, f"pod {name} to be {phases}"
        )
        return self.status(name)

    def logs(self, name: str, *options: str) -> str:
        return self.api.kubectl("logs", name, *options)

    def wait_log(self, name: str, text: str) -> None:
        wait_until(
            lambda: text in self.logs(name),
            TIMEOUT,
            f"{text!r} in the log",
            ignoring=(CommandError,),
        )

    def pid(self, name: str) -> int:
        return int(
            self.status(name)["containerStatuses"][0]["containerID"].removeprefix("process://")
        )


@pytest.fixture(scope="module", params=[True, False], ids=["own-root", "rewritten"])
def bed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    if request.param and mount_namespace_command() is None:
        pytest.skip(
            "this machine does not allow mount namespaces (`unshare --mount --map-root-user`)"
        )
    folder = tmp_path_factory.mktemp("node")
    package = folder / "package"
    package.mkdir()
    (package / "hello").write_text("#!/bin/sh\necho packaged $WHO $1 in $(pwd)\n")
    (package / "hello").chmod(0o755)
    image = ProcessImage(
        binds={"/opt/package": str(package)},
        env={"WHO": "image"},
        entrypoint=("/opt/package/hello",),
        workdir="/opt",
    )
    ports = PortPool()
    with ControlPlane(folder / "run") as control_plane:
        images = {HOST: ProcessImage(), PACKAGED: image}
        node = NodeProcess(control_plane, images, ports=ports, mount_namespaces=request.param)
        node.start()
        yield Bed(control_plane, node)
        node.stop()
    ports.close()


def runs(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def test_a_pod_sees_its_config_maps_secrets_fields_and_token(bed: Bed) -> None:
    bed.config_map("seen", key="from-map")
    bed.api.kubectl("create", "secret", "generic", "hidden", "--from-literal=word=from-secret")
    bed.run(
        "sees",
        f"cat /data/key /words/word; echo; echo $IP $WORD $TOGETHER; cat {ACCOUNT}/token; exit 3",
        volumes={
            "data": ("/data", {"configMap": {"name": "seen"}}),
            "words": ("/words", {"secret": {"secretName": "hidden"}}),
        },
        env=[
            {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            {"name": "WORD", "valueFrom": {"secretKeyRef": {"name": "hidden", "key": "word"}}},
            {"name": "TOGETHER", "value": "$(IP)/$(WORD)"},
        ],
    )
    status = bed.wait("sees", "Failed")
    assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3
    files, variables, token = bed.logs("sees").splitlines()
    ip = status["podIP"]
    assert ip.startswith("127.64.")
    assert files == "from-mapfrom-secret"
    assert variables == f"{ip} from-secret {ip}/from-secret"
    who = bed.api.kubectl(
        "auth", "whoami", f"--token={token}", "-o", "jsonpath={.status.userInfo.username}"
    )
    # the kubeconfig's own token would answer "admin"
    assert who == "system:serviceaccount:default:default"


def test_files_change_under_a_running_pod_all_at_once(bed: Bed) -> None:
    bed.config_map("live", a="old", b="old")
    bed.run(
        "live",
        "while :; do echo $(cat /data/..data/a /data/..data/b); sleep 0.05; done",
        volumes={"data": ("/data", {"configMap": {"name": "live"}})},
    )
    bed.wait_log("live", "old")
    began = time.monotonic()
    bed.config_map("live", a="new", b="new")
    bed.wait_log("live", "new")
    assert time.monotonic() - began < 3
    bed.api.kubectl("delete", "pod", "live", "--grace-period=1")


def test_a_pod_waits_for_what_does_not_exist_yet(bed: Bed) -> None:
    bed.run("early", "cat /data/key", volumes={"data": ("/data", {"configMap": {"name": "late"}})})
    wait_until(
        lambda: "late" in str(bed.status("early").get("containerStatuses")),
        TIMEOUT,
        "the pod to say what is missing",
    )
    assert bed.status("early")["phase"] == "Pending"
    bed.config_map("late", key="there")
    bed.wait("early", "Succeeded")
    assert bed.logs("early") == "there"


def test_an_image_brings_files_environment_and_entrypoint(bed: Bed) -> None:
    bed.run(
        "image",
        "",
        image=PACKAGED,
        command=None,
        args=["word"],
        env=[{"name": "WHO", "value": "pod"}],
    )
    bed.wait("image", "Succeeded")
    assert bed.logs("image").strip() == "packaged pod word in /opt"


def test_a_pod_with_an_unknown_image_waits_and_says_so(bed: Bed) -> None:
    def waiting() -> dict[str, Any]:
        statuses = bed.status("no-image").get("containerStatuses") or [{"state": {}}]
        return dict(statuses[0]["state"].get("waiting", {}))

    bed.run("no-image", "true", image="nginx:1")
    wait_until(lambda: waiting().get("reason") == "ErrImagePull", TIMEOUT, "the pod to wait")
    assert "no image 'nginx:1'" in waiting()["message"]
    assert bed.status("no-image")["phase"] == "Pending"


def last_words(bed: Bed, name: str) -> str:
    ended = bed.wait(name, "Failed")["containerStatuses"][0]["state"]["terminated"]
    return str(ended.get("message", ""))


def test_a_container_leaves_its_last_words(bed: Bed) -> None:
    fallback = {"terminationMessagePolicy": "FallbackToLogsOnError"}
    bed.run("silent", "echo printed; exit 1")
    bed.run("printed", "seq 100; exit 1", **fallback)
    assert last_words(bed, "silent") == ""
    assert last_words(bed, "printed").split() == [str(number) for number in range(21, 101)]


def test_a_termination_log_comes_before_the_output(
    bed: Bed, request: pytest.FixtureRequest
) -> None:
    if "rewritten" in request.node.name:
        pytest.skip("without a root of its own, a container has no /dev/termination-log")
    bed.run("left", "echo printed; echo left > /dev/termination-log; exit 1")
    assert last_words(bed, "left") == "left\n"


def test_a_program_that_does_not_exist_ends_with_127(bed: Bed) -> None:
    bed.run("no-program", "", command=["/no/such/program"])
    status = bed.wait("no-program", "Failed")
    assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 127
    assert "/no/such/program" in bed.logs("no-program")


def test_deletion_asks_first_and_then_kills_the_whole_group(bed: Bed) -> None:
    bed.run("polite", "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done")
    bed.run("stubborn", "trap '' TERM; sleep 1000 & echo up; while :; do sleep 0.05; done")
    for name in ("polite", "stubborn"):
        bed.wait_log(name, "up")
    stubborn = psutil.Process(bed.pid("stubborn"))
    family = [stubborn, *stubborn.children()]
    log = next((bed.node.folder / "logs").glob("default_polite_*")) / "main.0.log"

    began = time.monotonic()
    bed.api.kubectl("delete", "pod", "polite")
    assert time.monotonic() - began < 10
    assert "bye" in log.read_text()

    bed.api.kubectl("delete", "pod", "stubborn", "--grace-period=1")
    wait_until(
        lambda: not any(runs(process.pid) for process in family), TIMEOUT, "the group to be gone"
    )
    pods = bed.node.folder / "pods"
    wait_until(lambda: not list(pods.glob("default_stubborn_*")), TIMEOUT, "its folder to be gone")


def test_init_containers_come_first_and_a_crash_is_started_again(bed: Bed) -> None:
    init = {"name": "init", "image": HOST, "command": ["sh", "-c", "echo ready > /shared/file"]}
    mount = [{"name": "shared", "mountPath": "/shared"}]
    bed.run(
        "loop",
        "cat /shared/file; echo again >> /shared/file; exit 1",
        policy="Always",
        volumes={"shared": ("/shared", {"emptyDir": {}})},
        spec={"initContainers": [init | {"volumeMounts": mount}]},
    )
    wait_until(
        lambda: bed.status("loop").get("containerStatuses", [{}])[0].get("restartCount", 0) >= 2,
        TIMEOUT,
        "2 restarts",
    )
    status = bed.status("loop")
    assert status["phase"] == "Running"
    assert status["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] == 1
    assert status["initContainerStatuses"][0]["state"]["terminated"]["reason"] == "Completed"
    assert bed.logs("loop", "--previous").startswith("ready")
    bed.api.kubectl("delete", "pod", "loop", "--grace-period=1")


def test_a_mount_inside_a_shared_volume_does_not_part_it(bed: Bed) -> None:
    bed.config_map("inner", key="inner")
    mounts = [
        {"name": "shared", "mountPath": "/shared"},
        {"name": "inner", "mountPath": "/shared/inner"},
    ]
    script = "cat /shared/inner/key > /shared/copy"
    init = {"name": "init", "image": HOST, "command": ["sh", "-c", script], "volumeMounts": mounts}
    volumes = [
        {"name": "shared", "emptyDir": {}},
        {"name": "inner", "configMap": {"name": "inner"}},
    ]
    bed.run(
        "nested",
        "cat /shared/copy",
        volumeMounts=mounts[:1],
        spec={"initContainers": [init], "volumes": volumes},
    )
    bed.wait("nested", "Succeeded")
    assert bed.logs("nested") == "inner"


def test_a_killed_container_reports_137_and_leaves_no_children(bed: Bed) -> None:
    bed.run("killed", "sleep 1000 & echo up; wait")
    bed.wait_log("killed", "up")
    process = psutil.Process(bed.pid("killed"))
    children = process.children()
    process.kill()
    status = bed.wait("killed", "Failed")
    assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 137
    wait_until(
        lambda: not any(runs(child.pid) for child in children), TIMEOUT, "the children to be gone"
    )


def test_each_pod_has_its_own_address_and_temporary_folder(bed: Bed) -> None:
    file = f"file-{uuid.uuid4()}"
    for name in ("one", "two"):
        bed.run(
            name, f'cd "${{TMPDIR:-/tmp}}"; touch {file}; ls | grep -c {file}; hostname > /dev/null'
        )
        bed.wait(name, "Succeeded")
        assert bed.logs(name) == "1\n"
    assert bed.status("one")["podIP"] != bed.status("two")["podIP"]
    assert not Path("/tmp", file).exists()  # noqa: S108


def test_logs_can_be_followed_to_the_end(bed: Bed) -> None:
    bed.run("talks", "for i in 1 2 3; do echo $i; sleep 0.3; done")
    bed.wait("talks", "Running", "Succeeded")
    assert bed.logs("talks", "--follow").split() == ["1", "2", "3"]
    assert bed.logs("talks", "--tail=1").split() == ["3"]


def test_events_during_an_outage_of_the_api_server_are_reported_after_it(bed: Bed) -> None:
    bed.run(
        "outage",
        "echo up; while [ ! -e /gate/open ]; do sleep 0.05; done; exit 4",
        volumes=gate(bed),
    )
    bed.wait_log("outage", "up")
    pid = bed.pid("outage")
    bed.api.kill_apiserver()
    (bed.node.folder / "gate" / "open").touch()
    wait_until(lambda: not runs(pid), TIMEOUT, "the container to end")
    bed.api.start_apiserver()
    status = bed.wait("outage", "Failed")
    assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 4


def gate(bed: Bed) -> dict[str, Any]:
    folder = bed.node.folder / "gate"
    return {"gate": ("/gate", {"hostPath": {"path": str(folder), "type": "DirectoryOrCreate"}})}


def test_a_deployment_replaces_what_a_crash_of_the_node_took(bed: Bed) -> None:
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": HOST, "command": ["sleep", "1000"]}]},
    }
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    metadata = {"name": "web", "namespace": "default"}
    bed.api.apply(
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}
    )
    bed.api.kubectl("rollout", "status", "deployment/web", "--timeout=20s")
    pods = bed.api.items("pods", selector="app=web")
    pids = [bed.pid(pod["metadata"]["name"]) for pod in pods]

    bed.node.kill()
    wait_until(
        lambda: not any(runs(pid) for pid in pids), TIMEOUT, "the containers to die with the node"
    )
    bed.node.start()
    for pod in pods:
        name = pod["metadata"]["name"]
        wait_until(
            lambda name=name: bed.status(name).get("reason") == "NodeRestart",
            TIMEOUT,
            "the loss to be told",
        )
    bed.api.kubectl("rollout", "status", "deployment/web", "--timeout=20s")
    bed.api.kubectl("delete", "deployment", "web")
    wait_until(lambda: not bed.api.items("pods", selector="app=web"), 40, "the pods to be gone")


def test_many_pods_at_once(bed: Bed) -> None:
    names = [f"many-{number}" for number in range(10)]
    threads = [threading.Thread(target=bed.run, args=(name, "sleep 0.2")) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name in names:
        bed.wait(name, "Succeeded")
    assert len({bed.status(name)["podIP"] for name in names}) == len(names)


def test_the_node_runs_as_this_user(bed: Bed) -> None:
    bed.run("user", "id -u")
    bed.wait("user", "Succeeded")
    # with a root of its own and without privileges, the user looks like root to itself
    assert bed.logs("user").strip() in {"0", str(os.getuid())}
