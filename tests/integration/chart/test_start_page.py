"""docs/start/kubernetes.md, step by step as it is written: chart, manifest and commands.

The status page is looked at before everything is removed.
"""

import asyncio
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from balanced_source_operator.resources.kinds import NAME_LABEL
from support.page_scene import Viewer
from testbed.cluster import ProcessCluster
from testbed.helm import Helm
from testbed.ports import PortPool
from testbed.versions import CHECKOUT, OURS
from testbed.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(900)]

PAGE = (CHECKOUT / "docs" / "start" / "kubernetes.md").read_text(encoding="utf-8")
NAME = "balanced-source"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessCluster]:
    """A cluster with Kubeflow's Spark operator and a broker that has the topic of the page."""
    with ProcessCluster(
        tmp_path_factory.mktemp("start") / "run", kafka=["main"], keep_logs=True
    ) as started:
        started.kafka().admin.create_topics({"orders": 4})
        started.kafka().admin.produce("orders", [b"x"] * 100)
        yield started


@pytest.fixture
def ports() -> Iterator[PortPool]:
    """All pods of the process node listen on the same addresses."""
    pool = PortPool()
    yield pool
    pool.close()


def commands(first: str) -> list[list[str]]:
    """The words of the page's commands that begin with this program."""
    joined = PAGE.replace("\\\n", " ")
    return [
        shlex.split(line) for line in joined.splitlines() if line.startswith(f"        {first} ")
    ]


def install(cluster: ProcessCluster, helm: Helm, chart: Path, ports: PortPool) -> int:
    """Run the page's `helm install`, with what this cluster needs and the status page.

    Return the page's port.
    """
    port = ports.take()
    values = {
        "sparkConf": cluster.driver_spark_conf,
        "metrics": {"port": ports.take()},
        "probes": {"port": ports.take()},
        "page": {"enabled": True, "port": port},
    }
    # The cluster has the Spark operator already.
    _, words, _ = commands("helm")
    here = {"charts/balanced-source": str(chart), f"image.tag={OURS}": "image.tag=dev"}
    given = [here.get(word, word).replace("REGISTRY/", "balanced-source/") for word in words[1:]]
    helm(*given, "--values", helm.values("start", values), "--wait", "--timeout", "3m")
    return port


def manifest(cluster: ProcessCluster) -> str:
    """The page's volume and source."""
    found = re.search(r"^    ```yaml\n(.*?)^    ```", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None
    text = dedent(found[1]).replace("broker.kafka:9092", cluster.kafka().bootstrap)
    return text.replace("REGISTRY/spark:4.2.0", cluster.image())


def run(cluster: ProcessCluster, words: list[str]) -> str:
    """Run one of the page's `balanced-source` commands."""
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-m", "balanced_source_operator.command", *words[1:]],
        env={
            "KUBECONFIG": str(cluster.control_plane.kubeconfig()),
            "PATH": "/usr/bin:/bin",
            "COLUMNS": "200",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run_python(cluster: ProcessCluster) -> str:
    """Run what the page runs in the driver's pod, on this node's folder of the volume."""
    [words] = [words for words in commands("kubectl") if "exec" in words]
    [volume] = cluster.run_dir.rglob("orders-data")
    code = words[-1].replace("/data/", f"{volume}/")
    return subprocess.run(  # noqa: S603 - our own page
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    ).stdout


def test_the_page_works_as_it_is_written(
    cluster: ProcessCluster, chart: Path, ports: PortPool
) -> None:
    kubectl = cluster.control_plane.kubectl
    create, apply, *_ = commands("kubectl")
    kubectl(*create[1:])
    helm = Helm(cluster.run_dir / "helm", control_plane=cluster.control_plane)
    port = install(cluster, helm, chart, ports)
    file = cluster.run_dir / "orders.yaml"
    file.write_text(manifest(cluster))
    kubectl(*(word.replace("orders.yaml", str(file)) for word in apply[1:]))

    def readers() -> str:
        return kubectl("get", "bsrc/orders", "-n", "jobs", "-o", "jsonpath={.status.readers}")

    wait_until(lambda: readers() == "2", 300, "2 readers", interval=0.5)
    doctor, top = commands(NAME)
    assert "orders" in run(cluster, doctor)
    assert "reader" in run(cluster, [word for word in top if word != "--watch"]).lower()

    assert "'value': b'x'" in run_python(cluster)

    *_, scale, delete = commands("kubectl")
    kubectl(*scale[1:])
    wait_until(lambda: readers() == "4", 120, "4 readers", interval=0.5)
    asyncio.run(_look_at_the_page(cluster, port))

    kubectl(*delete[1:])
    pods = ("get", "pods", "-n", "jobs", "-l", f"{NAME_LABEL}=orders", "-o", "name")
    wait_until(lambda: kubectl(*pods) == "", 120, "the pods to be gone", interval=0.5)
    helm(*commands("helm")[-1][1:], "--wait")
    left = kubectl("get", "deployments", "-n", "balanced-source", "-o", "name")
    assert left == "", "the operator is gone, too"


async def _look_at_the_page(cluster: ProcessCluster, port: int) -> None:
    """The operator's pod serves the page to who may get the source, and to no one else."""
    kubectl = cluster.control_plane.kubectl
    for name in ("viewer", "stranger"):
        kubectl("create", "serviceaccount", name, "-n", "jobs")
    kubectl(
        "create",
        "rolebinding",
        "viewer",
        "-n",
        "jobs",
        "--clusterrole=view",
        "--serviceaccount=jobs:viewer",
    )
    viewer, stranger = (
        Viewer(port, kubectl("create", "token", name, "-n", "jobs").strip())
        for name in ("viewer", "stranger")
    )
    status, text, headers = await viewer.get("/")
    assert (status, "Balanced Source" in text) == (200, True)
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    async with (
        asyncio.timeout(60),
        viewer.following("/api/events?namespace=jobs&name=orders") as events,
    ):
        while (source := await events.until("source"))["acknowledged"] != source["epoch"]:
            pass
    assert "Rescaled from 2 to 4 readers" in [entry["why"] for entry in source["timeline"]]
    status, _, _ = await stranger.get("/api/events?namespace=jobs&name=orders")
    assert status == 403
