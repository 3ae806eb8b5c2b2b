"""Settings of the operator process: its environment."""

import json
from collections.abc import Mapping
from typing import Any, Final

from balanced_source.errors import InvalidSpecError
from balanced_source_operator.settings import PREFIX, Settings, settings_from
from support.reference.docstrings import documented
from support.reference.markdown import head, table

TEXT: Final = """Environment variables of `balanced-source operator`. The chart sets them from its
values. What a user wants of a source is in the BalancedSource, never here.
"""
_PROBES: Final = ("7", "name", '{"a": "b"}')


def page() -> str:
    """Return the page."""
    default = Settings()
    rows = [
        (f"`{variable(name)}`", f"`{_shown(getattr(default, name))}`", text)
        for name, text in documented(Settings)
    ]
    text = head(
        "Settings of the operator", "operator/src/balanced_source_operator/settings.py", TEXT
    )
    return text + "\n" + table(("variable", "default", "meaning"), rows)


def variable(name: str) -> str:
    """Return the variable of a setting; found by trying, so that it cannot be wrong."""
    for suffix in (name.upper(), f"{name.upper()}_SECONDS"):
        if any(
            getattr(_settings({PREFIX + suffix: probe}), name) != getattr(Settings(), name)
            for probe in _PROBES
        ):
            return PREFIX + suffix
    raise LookupError(f"no variable sets {name}")


def _settings(environment: Mapping[str, str]) -> Settings:
    try:
        return settings_from(environment)
    except InvalidSpecError:
        return Settings()


def _shown(value: Any) -> str:
    return (
        ",".join(value)
        if isinstance(value, tuple)
        else json.dumps(value)
        if isinstance(value, dict)
        else str(value)
    )
