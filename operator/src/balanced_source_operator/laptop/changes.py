"""Names the changes of a manifest that a running query cannot take over."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from balanced_source_operator.spec import Application

_USED: Final = ("mainApplicationFile", "sparkConf", "sparkConfFrom")
"""Fields of spec.application that a local run uses, besides those of `pipeline`."""


def pending_changes(started: Application, edited: Application) -> tuple[str, ...]:
    """Return a sentence for the fields that have changed since the query started, if any has.

    Args:
        started: the application with which the query runs.
        edited: the application of the newest valid spec.
    """
    if started == edited:
        return ()
    before, after = (dict(_fields(each)) for each in (started, edited))
    changed = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    if not changed:
        return ()
    names = ", ".join(f"spec.application.{name}" for name in changed)
    verb = "it takes" if len(changed) == 1 else "they take"
    return (f"{names} changed: {verb} effect at the next start",)


def _fields(application: Application) -> Iterator[tuple[str, Any]]:
    found: Mapping[str, Any] = application.model_dump(mode="json", by_alias=True)
    yield from ((name, found[name]) for name in _USED)
    for name, value in (found["pipeline"] or {}).items():
        yield f"pipeline.{name}", value
