"""Checks the chart's alerts for a Prometheus that has the series of several clusters.

The usual cases are played with `metrics.prometheusRule.matchLabels`: series of another cluster
beside them change nothing.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from testbed.commands import run
from testbed.helm import Helm
from testbed.versions import CHECKOUT

_LABEL: Final = "site"
"""Tells clusters apart; no case has it."""

_CHART: Final = CHECKOUT / "charts" / "balanced-source"
_MATCHER: Final = f'{_LABEL}="here"'
_NO_SITE: Final = f'{_LABEL}=""'
"""Selects the series of the cases as they are, so that alerts have the labels that cases expect."""

_LIMITS: Final = {"records": 1_000_000, "seconds": 3600}
"""Those of the cases; without any, the chart leaves the alert out."""

_SERIES: Final = re.compile(r"(\w+)(?:\{(.*)\})?")
_Values = Callable[[str], str]
_ELSEWHERE: Final[dict[str, _Values]] = {
    "the same everywhere": lambda values: values,
    "all ones elsewhere": lambda _: "1x300",
    "all zeros elsewhere": lambda _: "0x300",
}
"""What the other cluster serves → its values from those of a series."""


def check(program: Path, cases: Path, folder: Path) -> str:
    """Return what to print.

    Args:
        program: promtool.
        cases: the usual ones.
        folder: gets files.

    Raises:
        CommandError: a rule is wrong, or asks for the series of another cluster.
    """
    made = {
        "one-cluster": _rendered(folder, "one-cluster"),
        "one-release": _rendered(folder, "one-release", watchNamespaces=["jobs"]),
    }
    for name, groups in made.items():
        _write(folder / f"{name}.yaml", {"groups": groups})
        run([program, "check", "rules", f"{name}.yaml"], cwd=folder)
    _write(folder / "played.yaml", {"groups": _playable(made["one-cluster"])})
    usual = yaml.safe_load(cases.read_text())
    tests = [
        _beside(case, name, values)
        for name, values in _ELSEWHERE.items()
        for case in usual["tests"]
    ]
    _write(folder / "clusters.yaml", {**usual, "rule_files": ["played.yaml"], "tests": tests})
    run([program, "test", "rules", "clusters.yaml"], cwd=folder)
    return f"alerts of one cluster among several: promtool plays {len(tests)} cases\n"


def _rendered(folder: Path, name: str, **values: Any) -> list[dict[str, Any]]:
    """Return the groups of the chart's rules with `matchLabels`."""
    helm = Helm(folder / "helm")
    rule = {"enabled": True, "matchLabels": {_LABEL: "here"}, "lagHigh": _LIMITS}
    file = helm.values(name, {"metrics": {"prometheusRule": rule}, **values})
    documents = yaml.safe_load_all(helm("template", "demo", _CHART, "--values", file))
    (made,) = (each for each in documents if each and each["kind"] == "PrometheusRule")
    groups: list[dict[str, Any]] = made["spec"]["groups"]
    return groups


def _playable(groups: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Return rules that ask for series without a site, and without their sentences."""
    for group in groups:
        rules = [
            {**rule, "expr": rule["expr"].replace(_MATCHER, _NO_SITE)} for rule in group["rules"]
        ]
        for rule in rules:
            del rule["annotations"]
        yield {**group, "rules": rules}


def _beside(case: dict[str, Any], name: str, values: _Values) -> dict[str, Any]:
    """Return a case with the series of another cluster beside its own."""
    own = case["input_series"]
    others = [
        {"series": _elsewhere(each["series"]), "values": values(each["values"])} for each in own
    ]
    return {**case, "name": f"{case['name']}, {name}", "input_series": [*own, *others]}


def _elsewhere(series: str) -> str:
    found = _SERIES.fullmatch(series)
    if not found or _LABEL in series:
        raise ValueError(f"{series}: a series of a case cannot be read, or has a {_LABEL}")
    labels = ",".join(filter(None, (found[2], f'{_LABEL}="elsewhere"')))
    return f"{found[1]}{{{labels}}}"


def _write(file: Path, content: dict[str, Any]) -> None:
    listed = {key: list(each) if key == "groups" else each for key, each in content.items()}
    file.write_text(yaml.safe_dump(listed))
