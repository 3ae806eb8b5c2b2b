"""Checks the answer to a `Discover`."""

from collections.abc import Collection
from itertools import islice
from typing import Any

from balanced_source.api import AsyncCall, CallFailure, SplitId
from balanced_source.api.split_checks import WrongAnswer
from balanced_source.connectors.answers import faults_of_ids, in_words, refused
from balanced_source.connectors.discovery.values import Discovered


def checked_discovery(
    call: AsyncCall, answer: Any, known: Collection[SplitId]
) -> Discovered | CallFailure:
    """Return the answer, or what is wrong with it.

    Args:
        call: the question.
        answer: what the connector returned.
        known: splits whose ids were checked before.
    """
    if isinstance(answer, CallFailure):
        return in_words(call, answer)
    ids: Any = answer.split_ids if isinstance(answer, Discovered) else answer
    if not isinstance(answer, Discovered) or not isinstance(ids, set | frozenset):
        return refused(
            call,
            WrongAnswer(f"a {type(ids).__name__}", "a Discovered, whose split_ids are a frozenset"),
        )
    fault = next(faults_of_ids([*ids.difference(known), *islice(known, 1)]), None)
    return answer if fault is None else refused(call, fault)
