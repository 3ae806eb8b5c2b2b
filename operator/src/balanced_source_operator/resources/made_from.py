"""The origin of a SparkApplication as an annotation, to tell what a restart would change.

The annotation shows values of plain settings only. Arguments and pod templates may hold anything,
and a setting may hold a login: of these it has a digest, which tells that they changed, and not
what they are.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from balanced_source.names import first_of, shown
from balanced_source.secret_keys import holds_secret
from balanced_source_operator.resources.kinds import SETTINGS_ANNOTATION
from balanced_source_operator.spec import Application

NOT_COMPARED: Final = {"hosts", "host_loss_policy", "restart"}
"""Settings whose change restarts no application."""

Leaf: TypeAlias = str | list[str]
"""A value that may be shown, or a list with the digest of one that may not."""

Settings: TypeAlias = Mapping[str, Leaf]
"""Settings by their place below `spec.application`; those with their default are left out."""

_HIDDEN: Final = frozenset({"arguments", "driver.template", "executor.template"})
_CHART: Final = "sparkConf of the chart: "
_MAX_VALUE: Final = 256
_MAX_ANNOTATION: Final = 32_768
"""Characters. Kubernetes allows 256 KiB for all annotations of an object together."""

_MAX_NAMED: Final = 5
_DEFAULT: Final = "(default)"

_KUBEFLOW: Final[Mapping[str, tuple[str, ...]]] = {
    "image": ("image",),
    "sparkVersion": ("sparkVersion",),
    "driver.memory": ("driver", "memory"),
    "executor.memory": ("executor", "memory"),
}
"""Where an application of Kubeflow's operator shows settings by itself, for one without the
annotation."""


def effective_conf(application: Application, conf: Mapping[str, str]) -> dict[str, str]:
    """Return what of the operator's Spark configuration an application does not set itself."""
    return {key: value for key, value in conf.items() if key not in application.spark_conf}


def settings_of(application: Application, *, conf: Mapping[str, str], uid: str) -> Settings:
    """Return what an application is made from.

    Args:
        application: what the user wants.
        conf: Spark configuration of the operator's settings.
        uid: of the source; digests of different sources cannot be compared.
    """
    dump = application.model_dump(
        mode="json", by_alias=True, exclude_defaults=True, exclude=NOT_COMPARED
    )
    found = {path: _leaf(path, value, uid) for path, value in _flat("", dump)}
    return found | {
        f"{_CHART}{key}": _leaf(key, value, uid)
        for key, value in effective_conf(application, conf).items()
    }


def annotation_text(settings: Settings) -> str:
    """Return the settings as text; empty if that is too long for an annotation."""
    text = json.dumps(settings, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text if len(text) <= _MAX_ANNOTATION else ""


def differences(made: Mapping[str, Any], wanted: Settings) -> str:
    """Return what differs between a SparkApplication and the settings that are wanted, for people.

    Args:
        made: the SparkApplication.
        wanted: see `settings_of`.
    """
    text = str((made["metadata"].get("annotations") or {}).get(SETTINGS_ANNOTATION, ""))
    before = _recorded(text)
    if before is None:
        return (
            _listed(_seen_from_outside(made, wanted))
            or "what changed is not recorded in this application"
        )
    return changes(before, wanted)


def changes(before: Settings, after: Settings) -> str:
    """Return what differs between two settings, for people."""
    places = sorted(p for p in before.keys() | after.keys() if before.get(p) != after.get(p))
    return _listed(_change(place, before.get(place), after.get(place)) for place in places)


def _recorded(text: str) -> Settings | None:
    """The settings of an annotation; None if it has none."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    return {
        place: value if isinstance(value, list) else str(value) for place, value in found.items()
    }


def _flat(place: str, value: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, dict) or place in _HIDDEN:
        yield place, value
        return
    for key, inner in value.items():
        yield from _flat(f"{place}.{key}" if place else key, inner)


def _leaf(place: str, value: Any, uid: str) -> Leaf:
    text = (
        value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)
    )
    if place in _HIDDEN or len(text) > _MAX_VALUE or holds_secret(place, text):
        return [hashlib.sha256(json.dumps([uid, place, text]).encode()).hexdigest()[:12]]
    return text


def _change(place: str, before: Leaf | None, after: Leaf | None) -> str:
    if isinstance(before, list) or isinstance(after, list):
        return f"{place} changed"
    return f"{place}: {_shown(before)} → {_shown(after)}"


def _shown(value: str | None) -> str:
    return _DEFAULT if value is None else shown(value)


def _listed(changes: Iterator[str]) -> str:
    return first_of(list(changes), _MAX_NAMED, separator="; ")


def _seen_from_outside(made: Mapping[str, Any], wanted: Settings) -> Iterator[str]:
    """Yield changes of an application that an earlier release made, as far as its fields tell."""
    for place, path in _KUBEFLOW.items():
        value: Any = made.get("spec") or {}
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, str) and place in wanted and wanted[place] != value:
            yield _change(place, value, wanted[place])
