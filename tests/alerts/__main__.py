"""Checks the chart's alerts and dashboards, and the metrics of operator and driver, with promtool.

It is fetched once from Debian if it is missing.
"""

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml
from prometheus_client import generate_latest

from alerts import dashboards, of_one_cluster
from alerts.scraped import scraped
from support.served_series import registry_of_driver, registry_of_operator
from testbed.commands import run
from testbed.errors import TestbedError
from testbed.prometheus import ensure_program
from testbed.versions import CHECKOUT

RULES = CHECKOUT / "charts" / "balanced-source" / "files" / "alerts.yaml"
CASES = Path(__file__).with_name("cases.yaml")


def _write(file: Path, rules: list[dict[str, Any]]) -> None:
    file.write_text(yaml.safe_dump({"groups": [{"name": "balanced-source", "rules": rules}]}))


def main() -> None:
    """Run promtool's checks.

    Raises:
        CommandError: a rule or a metric is wrong; the message has promtool's words.
    """
    program = ensure_program("promtool")
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
        # Again, as Prometheus has them: the labels of a pod do not reach an alert about a source.
        cases = yaml.safe_load(CASES.read_text())
        document = {**cases, "tests": scraped(cases["tests"])}
        (folder / "scraped.yaml").write_text(yaml.safe_dump(document))
        sys.stdout.write(run([program, "check", "rules", "complete.yaml"], cwd=folder))
        for file in (CASES.name, "scraped.yaml"):
            sys.stdout.write(run([program, "test", "rules", file], cwd=folder))
        sys.stdout.write(of_one_cluster.check(program, CASES, folder))
        sys.stdout.write(dashboards.check(program, folder))
    for name, registry in (("operator", registry_of_operator()), ("driver", registry_of_driver())):
        run([program, "check", "metrics"], stdin=generate_latest(registry).decode())
        sys.stdout.write(f"metrics of the {name}: promtool has nothing to say\n")


if __name__ == "__main__":
    try:
        main()
    except TestbedError as error:
        sys.exit(str(error))
