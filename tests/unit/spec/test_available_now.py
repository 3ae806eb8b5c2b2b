"""A query is to end with its source: a source that never ends is refused before anything runs."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from balanced_source.errors import InvalidSpecError
from balanced_source_operator.controller.translate import to_recalled_source, to_source
from balanced_source_operator.spec import parse_spec

EXAMPLES = Path(__file__).parents[3] / "examples"


def spec(kind: str, *, ends: bool) -> dict[str, Any]:
    """Return the spec of an example whose query is to end by itself."""
    name = {"kafka": "orders"}.get(kind, kind)
    documents = yaml.safe_load_all((EXAMPLES / f"{name}.yaml").read_text(encoding="utf-8"))
    found: dict[str, Any] = next(d["spec"] for d in documents if d["kind"] == "BalancedSource")
    found["application"]["pipeline"]["trigger"] = {"availableNow": True}
    match kind:
        case "files":
            found["source"]["files"].pop("discoveryInterval", None)
            found["source"]["files"] |= {} if ends else {"discoveryInterval": "30s"}
        case "hybrid":
            last = found["source"]["hybrid"][-1]["kafka"]
            last |= {"stoppingOffsets": {"type": "Latest"}} if ends else {}
        case _:
            pass
    return found


@pytest.mark.parametrize("kind", ["files", "hybrid"])
def test_a_source_whose_readers_ask_for_splits_must_end(kind: str) -> None:
    with pytest.raises(InvalidSpecError, match="the query ends when the source does") as caught:
        to_source(parse_spec(spec(kind, ends=False)))

    assert caught.value.field == "spec.application.pipeline.trigger.availableNow"
    assert to_source(parse_spec(spec(kind, ends=True))).kind == kind


@pytest.mark.parametrize("kind", ["kafka", "kinesis"])
def test_other_sources_need_not_end(kind: str) -> None:
    """Such a query ends with what was there at its start."""
    assert to_source(parse_spec(spec(kind, ends=False))).kind == kind


def test_a_source_that_runs_already_is_recalled_all_the_same() -> None:
    recalled = to_recalled_source(parse_spec(spec("hybrid", ends=False)), {}, {})
    assert recalled.kind == "hybrid"
