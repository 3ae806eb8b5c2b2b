"""What one reader is to read, and a sealed record that says otherwise."""

from dataclasses import replace

import pytest

from balanced_source.documents.journal import FetchLimits, JournalRecord, RecordKey
from balanced_source.errors import ContractViolationError
from balanced_source.host.journaling import Share

A, B = ("numbers", 0), ("numbers", 1)
KEY = RecordKey("a5f3", 7, 0)
SHARE = Share(key=KEY, parallelism=1, limits=FetchLimits(), starts={A: 5, B: None})
RECORD = JournalRecord(key=KEY, starts={A: 5, B: None}, ends={A: 9}, finished=frozenset({B}))


def test_a_record_of_this_share_is_accepted() -> None:
    SHARE.check(RECORD)
    SHARE.check(JournalRecord(key=KEY))


@pytest.mark.parametrize(
    "record",
    [
        replace(RECORD, starts={A: 6, B: None}),
        replace(RECORD, starts={B: None}),
        replace(RECORD, starts={A: 5, B: 0}),
        replace(RECORD, ends={A: 9, ("numbers", 2): 1}),
        replace(RECORD, finished=frozenset({("numbers", 2)})),
    ],
    ids=[
        "elsewhere",
        "nowhere",
        "finished from elsewhere",
        "another split",
        "another split is finished",
    ],
)
def test_a_record_of_another_share_is_refused(record: JournalRecord) -> None:
    with pytest.raises(ContractViolationError, match="two queries use one Spark checkpoint"):
        SHARE.check(record)
