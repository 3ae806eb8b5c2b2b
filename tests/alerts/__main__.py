"""Checks the chart's alerts and dashboards, and the operator's metrics, with promtool.

It is fetched once from Debian if it is missing.
"""

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml
from prometheus_client import generate_latest

from alerts import dashboards
from support.served_metrics import everything
from testbed.cache import Cache, content_key
from testbed.commands import find_program, run
from testbed.errors import TestbedError
from testbed.versions import CHECKOUT

RULES = CHECKOUT / "charts" / "balanced-source" / "files" / "alerts.yaml"
CASES = Path(__file__).with_name("cases.yaml")
PACKAGE = "prometheus"


def promtool() -> Path:
    """Return the program: the one on the path, or Debian's from the cache.

    Raises:
        MissingPrerequisiteError: there is neither promtool nor apt-get.
    """
    if found := shutil.which("promtool"):
        return Path(found)
    return Cache().artefact("promtool", content_key(PACKAGE), _fetch) / "usr" / "bin" / "promtool"


def _fetch(folder: Path) -> None:
    hint = "Install Prometheus, or put promtool on the PATH."
    run([find_program("apt-get", hint), "download", PACKAGE], cwd=folder)
    (package,) = folder.glob("*.deb")
    run([find_program("dpkg-deb", hint), "-x", package, folder])
    package.unlink()


def _write(file: Path, rules: list[dict[str, Any]]) -> None:
    file.write_text(yaml.safe_dump({"groups": [{"name": "balanced-source", "rules": rules}]}))


def main() -> None:
    """Run promtool's checks.

    Raises:
        CommandError: a rule or a metric is wrong; the message has promtool's words.
    """
    program = promtool()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        alerts = yaml.safe_load(RULES.read_text())
        _write(folder / "complete.yaml", alerts)
        # The cases compare labels; sentences are only checked for being valid templates.
        _write(
            folder / "rules.yaml",
            [{key: rule[key] for key in rule if key != "annotations"} for rule in alerts],
        )
        shutil.copy(CASES, folder)
        sys.stdout.write(run([program, "check", "rules", "complete.yaml"], cwd=folder))
        sys.stdout.write(run([program, "test", "rules", CASES.name], cwd=folder))
        sys.stdout.write(dashboards.check(program, folder))
    run([program, "check", "metrics"], stdin=generate_latest(everything().registry).decode())
    sys.stdout.write("metrics: promtool has nothing to say\n")


if __name__ == "__main__":
    try:
        main()
    except TestbedError as error:
        sys.exit(str(error))
