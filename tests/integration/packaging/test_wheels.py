"""The wheels in a bare environment run the quickstart notebook on a real broker."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.java import java_home
from testbed.kafka import KafkaCluster
from testbed.versions import CHECKOUT

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900), pytest.mark.thorough]

RECORDS = 500
ENVIRONMENT = {
    **{
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "VIRTUAL_ENV", "SPARK"))
    },
    "PATH": f"{java_home()}/bin:{os.environ['PATH']}",
}
"""Of this process, without what could lead to the checkout."""


def run(*command: str | Path, folder: Path = CHECKOUT, **environment: str) -> str:
    done = subprocess.run(  # noqa: S603 - our own scripts
        list(map(str, command)),
        cwd=folder,
        env={**ENVIRONMENT, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=800,
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-6000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with the locked dependencies and our wheels; no editable code and no PYTHONPATH."""
    folder = tmp_path_factory.mktemp("bare")
    run(CHECKOUT / ".ci" / "wheels", folder / "wheels", PYTHON=sys.executable)
    uv = run(CHECKOUT / ".ci" / "venv", "--uv").strip()
    python = folder / "venv" / "bin" / "python"
    locks = CHECKOUT / ".ci" / "locks"
    run(uv, "venv", "--quiet", "--python", sys.executable, folder / "venv")
    install = (uv, "pip", "install", "--quiet", "--python", python)
    run(*install, "--require-hashes", "-r", locks / "operator.txt", "-r", locks / "spark42.txt")
    run(*install, "--no-deps", "--no-index", *sorted((folder / "wheels").glob("*.whl")))
    run(uv, "pip", "check", "--quiet", "--python", python)
    return python


def test_the_wheels_have_a_command_with_a_version(bare: Path, tmp_path: Path) -> None:
    for name in ("balanced-source", "kubectl-bsrc"):
        assert run(bare.with_name(name), "--version", folder=tmp_path).startswith(
            "balanced-source 0."
        )
    assert "kubectl bsrc [OPTIONS] COMMAND" in run(
        bare.with_name("kubectl-bsrc"), "--help", folder=tmp_path
    )


def test_the_quickstart_runs_with_nothing_but_the_wheels(bare: Path, tmp_path: Path) -> None:
    with KafkaCluster("main", tmp_path / "kafka") as kafka:
        kafka.admin.create_topic("orders", partitions=8)
        kafka.admin.produce("orders", [str(number).encode() for number in range(RECORDS)])
        program, notebook = (
            Path(__file__).with_name("bare.py"),
            CHECKOUT / "examples" / "quickstart.ipynb",
        )
        out = run(
            bare,
            program,
            notebook,
            str(RECORDS),
            folder=tmp_path,
            BROKERS=kafka.bootstrap,
            TOPIC="orders",
        )

    assert "has 2 readers, epoch" in out
    assert "has 4 readers, epoch" in out
    assert f"native={RECORDS} streamed={RECORDS} expected={RECORDS}" in out
