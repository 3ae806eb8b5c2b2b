"""Prometheus and promtool: those of the machine, else Debian's, fetched into the cache."""

import shutil
from pathlib import Path
from typing import Final

import yaml

from testbed.cache import Cache, content_key
from testbed.commands import find_program, run
from testbed.ports import LOOPBACK, PortPool
from testbed.processes import Child, Supervisor
from testbed.started import Started
from testbed.web import answers

_PACKAGE: Final = "prometheus"
_START_TIMEOUT: Final = 60.0


def ensure_program(name: str, cache: Cache | None = None) -> Path:
    """Return the path of `prometheus` or `promtool`.

    Raises:
        MissingPrerequisiteError: there is neither the program nor apt-get.
    """
    if found := shutil.which(name):
        return Path(found)
    folder = (cache or Cache()).artefact("promtool", content_key(_PACKAGE), _fetch)
    return folder / "usr" / "bin" / name


def _fetch(folder: Path) -> None:
    hint = "Install Prometheus, or put prometheus and promtool on the PATH."
    run([find_program("apt-get", hint), "download", _PACKAGE], cwd=folder)
    (package,) = folder.glob("*.deb")
    run([find_program("dpkg-deb", hint), "-x", package, folder])
    package.unlink()


class Prometheus(Started):
    """A server that scrapes one address each second; a context manager.

    Args:
        supervisor: runs the process.
        folder: gets its settings and its data.
        ports: where a free port comes from.
        target: host and port to scrape.
    """

    def __init__(
        self, supervisor: Supervisor, folder: Path, *, ports: PortPool, target: str
    ) -> None:
        self._supervisor, self._folder, self._target = supervisor, folder, target
        self._child: Child | None = None
        self.url = f"http://{LOOPBACK}:{ports.take()}"

    def start(self) -> None:
        """Start it, and wait until it serves."""
        self._folder.mkdir(parents=True, exist_ok=True)
        job = {"job_name": "scraped", "static_configs": [{"targets": [self._target]}]}
        settings = {
            # labels of the operator's metrics, not of the scrape, as the chart's monitors say
            "scrape_configs": [{**job, "honor_labels": True}],
            "global": {"scrape_interval": "1s"},
        }
        file = self._folder / "prometheus.yml"
        file.write_text(yaml.safe_dump(settings))
        command: list[str | Path] = [
            ensure_program("prometheus"),
            f"--config.file={file}",
            f"--storage.tsdb.path={self._folder / 'data'}",
            f"--web.listen-address={self.url.removeprefix('http://')}",
        ]
        self._child = self._supervisor.start("prometheus", command)
        self._supervisor.wait_ready(
            self._child, lambda: answers(f"{self.url}/-/ready"), _START_TIMEOUT
        )

    def end(self, error: BaseException | None) -> None:
        if self._child:
            self._supervisor.stop(self._child)
