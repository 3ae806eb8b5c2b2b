"""No message says "1 splits": a number stands with its noun by `balanced_source.names.counted`."""

import ast
import re
from collections.abc import Iterator
from itertools import pairwise

import pytest

from testbed.versions import CHECKOUT

PRODUCT = ("operator/src", "spark_app/src")
ELSEWHERE = "/controller/autoscaling/"
"""Its words speak of rates, and of numbers of readers from two on."""

_NOUNS = (
    "attempts|blocks|bytes|calls|changes|characters|clusters|epochs|executors|failures|files|gaps"
    "|hosts|keys|lines|messages|micro-batches|moves|objects|offsets|pages|partitions|pods|queries"
    "|ranges|readers|records|reports|rows|shards|sources|splits|streams|topics"
)
_BEHIND = re.compile(rf"\s+(?:(?:former|more|new|other|removed)\s+)?(?:{_NOUNS})\b")

NEVER_ONE = {
    ("kafka/pattern.py", "len(text)"),
    ("kafka/source.py", "len(self.clusters)"),
    ("documents/calls.py", "len(text)"),
    ("documents/columns.py", "count"),
    ("documents/parts.py", "size"),
    ("documents/storage.py", "len(packed)"),
    ("files/avro.py", "block.num_records"),
    ("controller/failure_row.py", "self.count"),
    ("runtime/driver_calls.py", "answer.pages"),
}
"""Ends of paths, and numbers that are none or many where the text is used."""


def plain_counts(source: str) -> Iterator[str]:
    """Yield what stands before a plain plural in texts; a constant, in capitals, is many."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.JoinedStr):
            continue
        for field, text in pairwise(node.values):
            if (
                isinstance(field, ast.FormattedValue)
                and isinstance(text, ast.Constant)
                and _BEHIND.match(str(text.value))
                and not (number := ast.unparse(field.value)).isupper()
            ):
                yield number


@pytest.mark.parametrize("folder", PRODUCT)
def test_a_number_that_may_be_one_does_not_stand_before_a_plain_plural(folder: str) -> None:
    found = {
        (path, number)
        for file in sorted((CHECKOUT / folder).rglob("*.py"))
        if ELSEWHERE not in (path := file.as_posix())
        for number in plain_counts(file.read_text(encoding="utf-8"))
    }

    assert not [
        f"{path}: {number}"
        for path, number in sorted(found)
        if not any(path.endswith(f"/{end}") and number == known for end, known in NEVER_ONE)
    ]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ('f"{len(gone)} splits of a"', ["len(gone)"]),
        ('f"and {more} more topics"', ["more"]),
        ('f"{a} files" f" and {b} of {c} offsets"', ["a", "c"]),
        ('f"{MOST} splits"', []),
        ("f\"{counted(n, 'split')} of a\"", []),
        ('f"{host} reads splits"', []),
    ],
)
def test_only_a_plain_plural_is_found(text: str, numbers: list[str]) -> None:
    assert list(plain_counts(text)) == numbers
