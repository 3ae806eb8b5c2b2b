import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from testbed.errors import ProcessDiedError
from testbed.processes import Supervisor
from testbed.waiting import wait_until

pytestmark = pytest.mark.integration
STUBBORN = "trap '' TERM; echo ready; while :; do sleep 0.1; done"


def runs(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def test_a_process_that_dies_early_is_reported_with_the_end_of_its_log(run_dir: Path) -> None:
    supervisor = Supervisor(run_dir)
    child = supervisor.start("broken", ["sh", "-c", "echo cannot bind; exit 3"])
    with pytest.raises(ProcessDiedError, match=r"exit code 3(?s:.*)cannot bind"):
        supervisor.wait_ready(child, lambda: False, 10)


def test_a_stubborn_process_and_its_children_are_killed_after_the_grace_period(
    run_dir: Path,
) -> None:
    supervisor = Supervisor(run_dir)
    script = f"sleep 1000 & echo $! > {run_dir}/grandchild; {STUBBORN}"
    child = supervisor.start("stubborn", ["sh", "-c", script])
    supervisor.wait_ready(child, lambda: "ready" in child.log.read_text(), 10)
    grandchild = int((run_dir / "grandchild").read_text())
    supervisor.stop(child, grace=0.2)
    assert not runs(child.pid)
    wait_until(lambda: not runs(grandchild), 5, "the grandchild to be gone")
    assert list((run_dir / "pids").iterdir()) == []


def test_children_of_a_killed_run_die_with_it(run_dir: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path; from testbed.processes import Supervisor;"
        "print(Supervisor(Path(sys.argv[1])).start('s', ['sleep', '1000']).pid, flush=True);"
        "time.sleep(1000)"
    )
    with subprocess.Popen(  # noqa: S603 - the tests' own interpreter
        [sys.executable, "-c", script, str(run_dir)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as run:
        assert run.stdout is not None
        pid = int(run.stdout.readline())
        assert runs(pid)
        run.kill()
    wait_until(lambda: not runs(pid), 60, "the child to die with its parent")


def test_a_later_run_stops_detached_processes_but_never_a_stranger_with_the_same_pid(
    run_dir: Path,
) -> None:
    first = Supervisor(run_dir, detach=True)
    child = first.start("server", ["sleep", "1000"], stop_signal=signal.SIGKILL)
    stranger = first.start("stranger", ["sleep", "1000"])
    record = run_dir / "pids" / "stranger.json"
    changed = record.read_text().replace(f'"started": {stranger.started}', '"started": 1.0')
    record.write_text(changed)

    later = Supervisor(run_dir)
    assert [adopted.name for adopted in later.adopt()] == ["server"]
    later.stop_all()
    wait_until(lambda: not child.alive(), 5, "the server to be gone")
    assert stranger.alive()
    first.kill(stranger)
