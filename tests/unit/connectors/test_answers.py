"""Wrong answers of a connector.

A sentence that says what to return, and nothing that is stored and cannot be read.
"""

from dataclasses import replace
from datetime import date
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from balanced_source.api import STOP, AsyncCall, CallFailure, SourceEvent
from balanced_source.connectors.answers import checked_splits
from balanced_source.connectors.discovery import Discovered
from balanced_source.connectors.discovery.answers import checked_discovery, not_started
from balanced_source.connectors.pull import ListSplits, Page
from balanced_source.connectors.pull.paging import checked_page
from balanced_source.errors import (
    ContractViolationError,
    FatalProblemError,
    RefusedDiscoveryError,
    TransientDiscoveryError,
)
from support.journal_query import JournalQuery
from support.tapes import SHELF, FindTapes, ListTapes, Shelf, TapeHalf, TapeSplit

A = (SHELF, "a")
LIST = ListTapes(scope=SHELF, round=1)
FIND = FindTapes(scope=SHELF, split_ids=(A,))


class Odd(TapeSplit):
    """A tape with attributes of any kind."""

    def __init__(self, attributes: Any) -> None:
        super().__init__(name="a")
        object.__setattr__(self, "odd", attributes)

    def attributes(self) -> Any:
        return self.odd  # type: ignore[attr-defined]


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {"a": value}
    return value


def of(*ids: Any) -> Discovered:
    return Discovered(split_ids=frozenset(ids))


def message(answer: object) -> str:
    assert isinstance(answer, CallFailure)
    assert isinstance(answer.error, RefusedDiscoveryError)
    assert answer.error.scope == SHELF
    return str(answer.error)


@pytest.mark.parametrize(
    ("answer", "part"),
    [
        (None, "answered ListTapes with a NoneType. Its executor must return a Discovered"),
        ({A}, "with a set"),
        (
            Discovered(split_ids=[A]),
            "with a list. Its executor must return a Discovered, whose split_ids are a froz",
        ),  # type: ignore[arg-type]
        (
            of("a"),
            (
                "with 'a' as the id of a split. Its executor must return ids that are tuples of str"
                " and int"
            ),
        ),
        (of(()), r"with \(\) as the id of a split"),
        (of((SHELF, None)), r"with \('shelf', None\) as the id"),
        (of((SHELF, ("b", 3))), r"with \('shelf', \('b', 3\)\) as the id"),
        (of((SHELF, 3.0)), "as the id of a split"),
        (
            of(A, (SHELF, 3)),
            "with the ids .*. Its executor must return ids of the same length, with the same type",
        ),
        (of(A, (*A, "b")), "ids of the same length"),
        (of(("x" * 500,), (3,)), "xxx…"),
        (of((SHELF, "\ud800")), r"with \('shelf', '\\ud800'\) as the id .* texts in Unicode"),
        (of((SHELF, 10**4000)), "as the id of a split. Its executor must return ids that a doc"),
    ],
)
def test_a_wrong_listing_says_what_to_return(answer: Any, part: str) -> None:
    with pytest.raises(AssertionError, match=part):
        raise AssertionError(message(checked_discovery(LIST, answer, ())))


@pytest.mark.parametrize(
    ("answer", "part"),
    [
        (None, "answered FindTapes with a NoneType. Its executor must return a sequence of splits"),
        ({A: 0}, "with a tuple among the splits"),
        (
            [TapeSplit(name="b")],
            r"with split \('shelf', 'b'\). Its executor must return splits that the call names",
        ),
        ([TapeSplit(name="a", next="7")], "with position '7' of split"),  # type: ignore[arg-type]
        (
            [TapeSplit(name="a", next=1.5)],
            "with position 1.5 of split .*positions that are int or None",
        ),  # type: ignore[arg-type]
        ([TapeSplit(name="a", next=True)], "with position True of split"),
        ([TapeSplit(name="a", stop="7")], "with stopping position '7' of split"),  # type: ignore[arg-type]
        (
            [Odd({STOP: None})],
            r"attributes of split .*, whose 'stop' is None.* must return attributes",
        ),
        (
            [Odd({"at": date(2026, 1, 1)})],
            "the attributes of .* not JSON: 'at' is a date. Its exec",
        ),
        ([Odd({"a": [{"b": {1}}]})], r"not JSON: 'a'\[0\]\['b'\] is a set"),
        ([Odd({"a": "\ud800"})], r"not JSON: 'a' is '\\ud800', which is not Unicode"),
        ([Odd({"a": {"\ud800": 1}})], r"'a' has the key '\\ud800', which is not Unicode"),
        ([Odd({"a": {1: 1}})], "'a' has a key that is a int"),
        ([Odd({"a": float("nan")})], "'a' is nan"),
        ([Odd({"a": 10**4000})], "'a' has too many digits"),
        ([Odd(nested(2000))], "is nested too deep"),
        ([Odd([("a", 1)])], "a list as the attributes of split"),
        ([Odd(MappingProxyType({"a": 1}))], "not JSON: it is a mappingproxy"),
        (
            [TapeSplit(name="a", next=0), TapeSplit(name="a", next=5)],
            r"with split \('shelf', 'a'\) more than once. Its executor must return each split once",
        ),
    ],
)
def test_wrong_splits_say_what_to_return(answer: Any, part: str) -> None:
    with pytest.raises(AssertionError, match=part):
        raise AssertionError(message(checked_splits(FIND, answer, {A})))


def test_a_wrong_page_says_what_to_return() -> None:
    call = _Listing()
    assert "with a list. Its executor must return a Page" in message(checked_page(call, []))
    assert "with a str among the splits" in message(checked_page(call, Page(splits=("a",))))  # type: ignore[arg-type]
    assert "with 'a' as the id" in message(checked_page(call, Page(splits=(_Nameless(name="b"),))))
    right = Page(splits=(TapeSplit(name="a"),))
    assert checked_page(call, right) is right  # type: ignore[arg-type]


def test_right_answers_are_taken_as_they_are() -> None:
    assert checked_discovery(LIST, right := of(A, (SHELF, "b")), ()) is right
    assert checked_discovery(LIST, right := Discovered(split_ids={A}), ()) is right  # type: ignore[arg-type]
    assert checked_splits(FIND, iter(found := (TapeSplit(name="a"),)), {A}) == found


def test_ids_that_are_assigned_are_not_checked_again() -> None:
    """A hundred thousand of them are listed again and again. New ones must be like them."""
    odd = (SHELF, 3.0)
    assert isinstance(checked_discovery(LIST, of(A, odd), {A: 0, odd: 1}), Discovered)
    assert "with the ids" in message(checked_discovery(LIST, of(A, (SHELF, 3)), {A: 0}))


def test_an_unexpected_exception_becomes_a_sentence() -> None:
    found = checked_discovery(LIST, CallFailure(KeyError("x")), ())

    assert isinstance(found, CallFailure)
    assert isinstance(found.error, TransientDiscoveryError)
    assert str(found.error) == "shelf: the connector has failed to execute ListTapes: KeyError: 'x'"
    assert isinstance(found.error.__cause__, KeyError)
    refused = CallFailure(RefusedDiscoveryError("create it", scope=SHELF))
    assert checked_splits(FIND, refused, {A}) is refused
    assert checked_page(_Listing(), refused) is refused


def test_a_query_ends_with_that_sentence(tmp_path: Path) -> None:
    half = TapeHalf(Shelf(lengths={"a": 3}))
    half.shelf = _Wrong(lengths={"a": 3})
    query = JournalQuery(tmp_path / "j", half)
    try:
        with pytest.raises(
            FatalProblemError, match=r"answered ListTapes with a list. Its executor must return"
        ):
            query.trigger()
    finally:
        query.close()


@pytest.mark.parametrize(
    "payload",
    [b"x", {1, 2}, {"a": object()}, float("nan"), {("a",): 1}, "\ud800", {"a": ["\udcff"]}],
)
def test_an_event_that_no_document_can_hold_is_refused_where_it_is_made(payload: Any) -> None:
    with pytest.raises(ContractViolationError, match="the payload of event 'hello' is not JSON"):
        SourceEvent(name="hello", payload=payload)


class _Listing(ListSplits):
    scope = SHELF
    round = 1


class _Nameless(TapeSplit):
    @property
    def split_id(self) -> Any:
        return "a"


class _Wrong(Shelf):
    def execute(self, call: AsyncCall) -> Any:
        found = super().execute(call)
        return (
            replace(found, split_ids=[*found.split_ids]) if isinstance(found, Discovered) else found
        )


def test_splits_that_are_left_out_are_named_in_their_order() -> None:
    """Messages of a condition that change at each look would be taken for news."""
    ids = tuple((SHELF, number) for number in range(8))
    call = FindTapes(scope=SHELF, split_ids=ids)

    found = not_started(call, [], lambda _: True)
    assert "shelf/0, shelf/1, shelf/2 and 5 more. Discovery looks again" in str(found)
