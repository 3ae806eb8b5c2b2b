"""Checks the queries of the chart's dashboards with promtool.

It parses each of them, and evaluates them: they return nothing where no series is, since unknown is
never shown as zero, and something where operator and driver serve everything that they can.
"""

import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from balanced_source_operator.controller import conditions
from support.dashboards.queries import VALUES, Target, stored, targets_of
from support.served_series import of_driver, of_operator
from testbed.commands import run

CASES: Final = Path(__file__).with_name("dashboards.yaml")
AT: Final = "4h"
"""When queries are evaluated; longer than the range of any."""

LABELS: Final[Mapping[str, tuple[str, ...]]] = {
    "namespace": (VALUES["$namespace"],),
    "source": (VALUES["$source"],),
    "type": (conditions.READY, conditions.DEGRADED),
    "reason": ("Reading",),
    "bound": ("min", "max"),
    "le": ("0.1", "+Inf"),
}
"""Label → values that its series have; all others have one value."""


def check(program: Path, folder: Path) -> str:
    """Return what to print.

    Raises:
        CommandError: a query is wrong; the message has promtool's words.
    """
    targets = [target for name, board in stored().items() for target in targets_of(name, board)]
    rules = [
        {"record": f"dashboard:query:{number}", "expr": target.expr}
        for number, target in enumerate(targets)
    ]
    _write(folder / "queries.yaml", {"groups": [{"name": "dashboards", "rules": rules}]})
    run([program, "check", "rules", "--lint=none", "queries.yaml"], cwd=folder)
    tests = [_unknown(targets), _known(targets), *_cases(targets)]
    _write(folder / "values.yaml", {"evaluation_interval": "1m", "tests": tests})
    run([program, "test", "rules", "values.yaml"], cwd=folder)
    return f"dashboards: promtool parses and evaluates {len(targets)} queries\n"


def _write(file: Path, content: Mapping[str, Any]) -> None:
    file.write_text(yaml.safe_dump(content))


def _unknown(targets: list[Target]) -> dict[str, Any]:
    """Return a test without any series: no query makes up a value."""
    queries = [{"expr": target.expr, "eval_time": AT, "exp_samples": []} for target in targets]
    return {"name": "nothing is served", "interval": "1m", "promql_expr_test": queries}


def _known(targets: list[Target]) -> dict[str, Any]:
    """Return a test with all series: each query finds some, whatever their values."""
    series = [
        {"series": series, "values": "0+1x300" if "_total" in series else "1x300"}
        for served in (of_operator(), of_driver())
        for name, labels in served.items()
        for series in _series(name, sorted(labels))
    ]
    found = [{"labels": "{}", "value": 1}]
    queries = [
        {"expr": f"group({target.expr})", "eval_time": AT, "exp_samples": found}
        for target in targets
    ]
    return {
        "name": "everything is served",
        "interval": "1m",
        "input_series": series,
        "promql_expr_test": queries,
    }


def _series(name: str, labels: list[str]) -> Iterator[str]:
    for values in itertools.product(*(LABELS.get(label, ("any",)) for label in labels)):
        pairs = ",".join(f'{k}="{v}"' for k, v in zip(labels, values, strict=True))
        yield f"{name}{{{pairs}}}"


def _cases(targets: list[Target]) -> Iterator[dict[str, Any]]:
    """Return the tests in the file, in which queries are named by panel and series."""
    queries = {(target.where.rpartition(" (")[0], target.legend): target for target in targets}
    for case in yaml.safe_load(CASES.read_text()):
        expected = [
            {
                "expr": queries[entry["panel"], entry["name"]].expr,
                "eval_time": entry["at"],
                "exp_samples": entry["samples"],
            }
            for entry in case.pop("queries")
        ]
        yield {"interval": "1m", **case, "promql_expr_test": expected}
