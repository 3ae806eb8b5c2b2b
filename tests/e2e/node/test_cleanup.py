"""A node that is killed in the middle leaves traces; the next one takes them back."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.node import system
from testbed.waiting import wait_until

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(os.geteuid() != 0, reason="a real node needs root"),
]
PROGRAM = """
import sys, time
from pathlib import Path
from testbed.node.cluster import NodeCluster
from testbed.waiting import wait_until
with NodeCluster(Path(sys.argv[1])) as cluster:
    shell = ["--restart=Never", "--command", "--", "python", "-c", "import time; time.sleep(3600)"]
    cluster.control_plane.kubectl("run", "sleeper", "--image=balanced-source/operator:dev", *shell)
    running = lambda: cluster.pods()[0]["status"]["phase"] == "Running"
    wait_until(running, 120, "the pod to run")
    Path(sys.argv[2]).touch()
    time.sleep(3600)
"""


def sysctls() -> dict[str, str]:
    return {name: system._sysctl(name).read_text() for name in system._SYSCTLS}


def test_the_next_node_takes_back_what_a_killed_one_has_left(tmp_path: Path) -> None:
    before, run_dir, mark = sysctls(), tmp_path / "run", tmp_path / "running"
    settings = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", PROGRAM, str(run_dir), str(mark)]
    # The tests' own interpreter
    with subprocess.Popen(command, env=settings) as process:  # noqa: S603
        wait_until(
            lambda: mark.exists() or process.poll() is not None,
            1500,
            "a pod on the node",
            interval=0.5,
        )
        assert process.poll() is None
        process.kill()
    assert system.left_overs(run_dir)
    with system.only_node():
        pass
    wait_until(lambda: not system.left_overs(run_dir), 20, "everything to be gone", interval=0.2)
    assert sysctls() == before
    assert not system.STATE.exists()
    assert not system._pod_cgroups()
    assert not system._pod_namespaces()
