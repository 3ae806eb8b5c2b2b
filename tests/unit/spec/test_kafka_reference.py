"""The reference of the Kafka source is complete, valid and up to date."""

import pytest

from support.kafka_reference import Entry, entries, page
from support.kafka_reference.page import examples
from testbed.versions import CHECKOUT


def test_the_page_is_up_to_date() -> None:
    assert (CHECKOUT / "docs" / "kafka.md").read_text(encoding="utf-8") == page(), (
        "stale: run `make generate`"
    )


def test_every_field_has_an_example_and_every_example_a_field() -> None:
    assert {entry.path for entry in entries()} == examples().keys()


@pytest.mark.parametrize("entry", list(entries()), ids=lambda entry: entry.path)
def test_every_example_is_valid_and_every_field_explained(entry: Entry) -> None:
    assert len(entry.meaning) > 10
    entry.check(examples()[entry.path])
