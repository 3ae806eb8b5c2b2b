"""Contract suites: what every implementation of a contract must do.

For pytest; extra ``balanced-source[testing]``.

Derive a class from a suite, implement its hooks, and name it ``Test…``.
"""

import pytest

_SUITES = (
    "assigner",
    "enumerator",
    "planner_hooks",
    "ranges_half",
    "readers_half",
    "serializer",
    "source_reader",
    "split_reader",
    "wake_up",
)

pytest.register_assert_rewrite(*(f"{__name__}.{suite}" for suite in _SUITES))
