"""Documents that the chart makes."""

from typing import Any


def one(documents: list[dict[str, Any]], kind: str, name: str = "") -> dict[str, Any]:
    """The only document of a kind (and a name)."""
    found = [d for d in documents if d["kind"] == kind and name in ("", d["metadata"]["name"])]
    assert len(found) == 1, f"{len(found)} documents of kind {kind} {name}"
    return found[0]
