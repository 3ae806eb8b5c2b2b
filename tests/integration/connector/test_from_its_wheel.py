"""The sample connector, from its wheel beside the product's, in local mode on a real Spark."""

import contextlib
import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import psutil
import pytest
import yaml

from support.builders import spec_json
from support.log_api import Entry, LogApi
from support.wheels import SAMPLE, Installed
from testbed.errors import DeadlineError
from testbed.waiting import wait_until

pytestmark = pytest.mark.thorough

LOGS = tuple(f"log-{number}" for number in range(7))
PATIENCE = 400
"""Seconds; a machine under load needs a minute for a JVM alone."""
OPERATOR = "from balanced_source_operator.cli import app; app()"


@pytest.fixture
def api() -> Iterator[LogApi]:
    with LogApi() as served:
        for name in LOGS:
            served.append(name, 200)
        yield served


class Program:
    """A process of the environment without the tree; killed with all that it started."""

    def __init__(self, installed: Installed, log: IO[str], *arguments: str) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - our own programs
            [installed.python, *arguments], env=dict(installed.environment), stdout=log, stderr=log
        )

    def check(self) -> None:
        assert self._process.poll() is None, f"it has ended with {self._process.returncode}"

    def wait(self) -> int:
        """Wait until it has ended; return its exit code."""
        return self._process.wait(PATIENCE)

    def wait_for_its_end(self) -> None:
        """Wait until it has ended without an error."""
        assert self.wait() == 0

    def kill(self) -> None:
        with contextlib.suppress(psutil.NoSuchProcess):
            for child in psutil.Process(self._process.pid).children(recursive=True):
                with contextlib.suppress(psutil.NoSuchProcess):
                    child.kill()
        self._process.kill()
        self._process.wait(60)


class Scene:
    """Local mode with a driver that may be killed."""

    def __init__(self, folder: Path, installed: Installed, api: LogApi) -> None:
        self.folder, self._installed, self._api = folder, installed, api
        self.out = folder / "out"
        self.out.mkdir()
        self._log = (folder / "programs.log").open("a")
        self.scale(2)
        self._programs = [self._start("-c", OPERATOR, "local", *self._local())]

    def scale(self, parallelism: int) -> None:
        custom = {
            "connector": "httplog",
            "config": {"url": self._api.url, "discoveryInterval": "1s", "secret": "api"},
        }
        spec = spec_json(parallelism=parallelism, source={"custom": custom})
        partial = self.folder / ".source.yaml"
        partial.write_text(yaml.safe_dump({"spec": spec}))
        partial.replace(self.folder / "source.yaml")
        (self.folder / "api").mkdir(exist_ok=True)
        (self.folder / "api" / "token").write_text("let-me-in")

    def drive(self) -> Program:
        read = (self.folder / "read.py").absolute()
        read.write_text((SAMPLE / "read.py").read_text())
        options = (f"assignmentDir={self.folder / 'documents'}", f"secretsDir={self.folder}")
        self._programs.append(self._start(str(read), str(self.out), *options))
        return self._programs[-1]

    def rows(self) -> list[list[Any]]:
        files = sorted(self.out.glob("*.json"), key=lambda path: int(path.stem))
        return [row for path in files for row in json.loads(path.read_text())]

    def delivered(self) -> Counter[Entry]:
        return Counter((log, number, text) for log, number, text, _ in self.rows())

    def parallelism(self) -> int:
        """The one of the newest logged micro-batch."""
        logged = [
            path
            for path in (self.out / "checkpoint" / "offsets").glob("[0-9]*")
            if path.name.isdigit()
        ]
        newest = max(logged, key=lambda path: int(path.name), default=None)
        return int(json.loads(newest.read_text().splitlines()[-1])["parallelism"]) if newest else 0

    def wait(self, condition: Any, what: str) -> None:
        def holds() -> bool:
            self._programs[0].check()
            self._programs[-1].check()
            return bool(condition())

        try:
            wait_until(holds, PATIENCE, what, interval=0.1)
        except (AssertionError, DeadlineError) as error:
            raise AssertionError(
                f"{error}: {(self.folder / 'programs.log').read_text()[-3000:]}"
            ) from error

    def wait_read(self) -> None:
        self.wait(
            lambda: self.delivered().keys() >= self._api.entries.keys(), "everything to be read"
        )

    def close(self) -> None:
        for program in self._programs:
            program.kill()
        self._log.close()

    def _start(self, *arguments: str) -> Program:
        return Program(self._installed, self._log, *arguments)

    def _local(self) -> tuple[str, ...]:
        return "-f", str(self.folder / "source.yaml"), "--dir", str(self.folder / "documents")


@pytest.fixture
def scene(tmp_path: Path, installed: Installed, api: LogApi) -> Iterator[Scene]:
    made = Scene(tmp_path, installed, api)
    yield made
    made.close()


def test_its_page_names_its_options_and_fields(installed: Installed) -> None:
    done = subprocess.run(  # noqa: S603 - our own programs
        [installed.python, "-c", OPERATOR, "reference", "httplog"],
        env=dict(installed.environment),
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert "From the package `balanced-source-httplog 1.0.0`." in done.stdout
    assert "| `url` | required | Address of the API. |" in done.stdout
    assert "| `journalLocation` |" in done.stdout
    assert "| `spec.source.custom.config.url` | string | required |" in done.stdout


@pytest.mark.timeout(900)
def test_a_mistake_inside_a_task_ends_the_query_with_a_sentence(
    tmp_path: Path, installed: Installed, api: LogApi
) -> None:
    """The client finds no `first` in the answer, in a thread of a task's reader."""
    api.is_broken = True
    read = tmp_path / "read.py"
    read.write_text((SAMPLE / "read.py").read_text())

    done = subprocess.run(  # noqa: S603 - our own programs
        [installed.python, str(read), str(tmp_path), f"url={api.url}"],
        env=dict(installed.environment),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )

    assert done.returncode != 0
    shown = done.stderr[done.stderr.rindex("StreamingQueryException:") :]
    assert (
        "connector 'httplog' of balanced-source-httplog 1.0.0 failed in poll_next: KeyError:"
        " 'first'. Report this to the authors of the package, with the traceback from the log"
    ) in shown
    # The traceback of the sink's function, which Spark calls, is there.
    assert "/balanced_source_httplog/" not in shown, "its traceback is in the executor's log"
    assert "/balanced_source_spark/" not in shown
    assert "a connector failed" in done.stderr


@pytest.mark.timeout(1500)
def test_it_is_rescaled_live_and_survives_a_killed_driver_exactly_once(
    scene: Scene, api: LogApi
) -> None:
    """Readers 2 → 5 → 3, and logs that are found while it runs; the driver is killed in between."""
    driver = scene.drive()
    scene.wait_read()
    assert scene.parallelism() == 2

    scene.scale(5)
    scene.wait(lambda: scene.parallelism() == 5, "five readers")
    api.append("new", 300)
    for name in LOGS:
        api.append(name, 300)
    scene.wait_read()
    assert {task for *_, task in scene.rows()} == set(range(5))

    for name in LOGS:
        api.append(name, 3000)
    driver.kill()
    scene.scale(3)
    scene.drive()
    scene.wait(lambda: scene.parallelism() == 3, "three readers")
    for name in LOGS:
        api.append(name, 100)
    scene.wait_read()

    assert scene.delivered() == api.entries, "each entry once"
    assert api.tokens.keys() == {"Bearer let-me-in"}
