"""Checks the answers to the calls of an enumerator.

What they hold is stored, and must stay readable.

A wrong answer counts as a failure of its call, so that a condition says what the connector has to
return.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import Any, TypeVar

from balanced_source.api import AsyncCall, CallFailure, SourceSplit, SplitId
from balanced_source.api.split_checks import WrongAnswer, id_fault, shapes_fault, split_fault
from balanced_source.errors import (
    BalancedSourceError,
    TransientDiscoveryError,
    WrongAnswerError,
    in_short,
)
from balanced_source.names import shown_value

SplitT = TypeVar("SplitT", bound=SourceSplit)


def checked_splits(
    call: AsyncCall,
    answer: Iterable[SplitT] | CallFailure,
    asked: Collection[SplitId] | None = None,
) -> tuple[SplitT, ...] | CallFailure:
    """Return the splits of an answer, or what is wrong with it.

    Args:
        call: the question.
        answer: what the connector returned.
        asked: ids that the question names; None if it asks for all splits.
    """
    if isinstance(answer, CallFailure):
        return in_words(call, answer)
    try:
        found = tuple(answer)
    except TypeError:
        return refused(call, WrongAnswer(f"a {type(answer).__name__}", "a sequence of splits"))
    fault = next(_faults_of_splits(found, asked), None)
    return found if fault is None else refused(call, fault)


def faults_of_ids(ids: Collection[Any]) -> Iterator[WrongAnswer]:
    """Yield what is wrong with ids of splits."""
    for split_id in ids:
        if fault := id_fault(split_id):
            yield fault
            return
    if fault := shapes_fault(ids):
        yield fault


def refused(call: AsyncCall, fault: WrongAnswer) -> CallFailure:
    """Return the failure that a wrong answer is."""
    scope = str(getattr(call, "scope", ""))
    message = (
        f"{scope}: the connector has answered {type(call).__name__} with {fault.found}. Its"
        f" executor must return {fault.expected}"
    )
    return CallFailure(WrongAnswerError(message, scope=scope))


def in_words(call: AsyncCall, failure: CallFailure) -> CallFailure:
    """Return a failure as a sentence, if it is an exception that no one raised on purpose."""
    error = failure.error
    # It was raised on purpose, and says what to do.
    if isinstance(error, BalancedSourceError):
        return failure
    scope, why = str(getattr(call, "scope", "")), in_short(error)
    failed = TransientDiscoveryError(
        f"{scope}: the connector has failed to execute {type(call).__name__}: {why}", scope=scope
    )
    failed.__cause__ = error
    return CallFailure(failed)


def _faults_of_splits(
    found: Collection[Any], asked: Collection[SplitId] | None
) -> Iterator[WrongAnswer]:
    for split in found:
        if not isinstance(split, SourceSplit):
            yield WrongAnswer(f"a {type(split).__name__} among the splits", "splits alone")
            return
        if asked is not None and split.split_id not in asked:
            name = f"split {shown_value(split.split_id)}"
            yield WrongAnswer(name, "splits that the call names alone, with the same ids")
        if fault := split_fault(split):
            yield fault
    ids = [split.split_id for split in found]
    if asked is None:
        yield from faults_of_ids(ids)
    # The later one would win, and the records between the two positions would be lost.
    if twice := [split_id for split_id, count in Counter(ids).items() if count > 1]:
        yield WrongAnswer(f"split {shown_value(twice[0])} more than once", "each split once")
