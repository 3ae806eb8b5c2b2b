"""Names the changes of a manifest that a running query cannot take over."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from balanced_source_operator.controller.translate import reader_options
from balanced_source_operator.spec import Application, BalancedSourceSpec

_USED: Final = ("mainApplicationFile", "sparkConf", "sparkConfFrom")
"""Fields of spec.application that a local run uses, besides those of `pipeline`."""


def pending_changes(started: BalancedSourceSpec, edited: BalancedSourceSpec) -> tuple[str, ...]:
    """Return a sentence for the fields that have changed since the query started, if any has.

    Args:
        started: with which the query runs.
        edited: the newest valid spec.
    """
    before, after = (dict(_fields(each.application)) for each in (started, edited))
    changed = [f"spec.application.{name}" for name in _differing(before, after)]
    of_rows = _pipeline_fields(started) | _pipeline_fields(edited)
    own = [
        name
        for name in _differing(reader_options(started), reader_options(edited))
        if name not in of_rows
    ]
    if own:
        changed.append(f"{edited.source.field} ({', '.join(own)})")
    if not changed:
        return ()
    verb = "it takes" if len(changed) == 1 else "they take"
    return (f"{', '.join(changed)} changed: {verb} effect at the next start",)


def _differing(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    return [name for name in {**before, **after} if before.get(name) != after.get(name)]


def _pipeline_fields(spec: BalancedSourceSpec) -> frozenset[str]:
    """Return the options that come from the pipeline, whose fields are compared by themselves."""
    pipeline = spec.application.pipeline
    return frozenset(pipeline.row_fields if pipeline is not None else ())


def _fields(application: Application) -> Iterator[tuple[str, Any]]:
    found: Mapping[str, Any] = application.model_dump(mode="json", by_alias=True)
    yield from ((name, found[name]) for name in _USED)
    for name, value in (found["pipeline"] or {}).items():
        yield f"pipeline.{name}", value
