"""Fields that take effect although the rest of the newest spec is invalid."""

from typing import Any

import pytest

from balanced_source_operator.controller.urgent import with_urgent_fields
from support.builders import make_spec

IN_EFFECT = make_spec(parallelism=3, suspend=True)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (None, (3, True)),
        ("text", (3, True)),
        ({}, (3, True)),
        ({"paralelism": 9, "suspnd": False}, (3, True)),
        ({"parallelism": 0}, (3, True)),
        ({"parallelism": None, "suspend": None}, (3, True)),
        ({"parallelism": 5}, (5, True)),
        ({"suspend": False}, (3, False)),
        ({"parallelism": "many", "suspend": False}, (3, False)),
        ({"parallelism": 5, "suspend": False, "source": {}}, (5, False)),
    ],
)
def test_a_field_that_is_missing_or_invalid_stays_in_effect(
    raw: Any, expected: tuple[int, bool]
) -> None:
    spec = with_urgent_fields(IN_EFFECT, raw)

    assert (spec.parallelism, spec.suspend) == expected
    assert spec.source == IN_EFFECT.source
