"""Where something stands in a YAML text, for people who correct it."""

import pytest

from balanced_source_operator.contract.yaml_text import load_all

TEXT = """\
spec:
  source:
    kafka: {}
  name: orders
name: shop
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("spec", "source", "kafka"), 3),
        (("spec", "source", "files", "paths"), 2),
        (("spec", "application", "name"), 1),
        (("status", "name"), 1),
    ],
)
def test_what_is_missing_is_placed_at_the_closest_value_around_it(
    path: tuple[str, ...], line: int
) -> None:
    """Not at a value of the same name further out."""
    (document,) = load_all(TEXT)

    assert document.place(path).line == line
