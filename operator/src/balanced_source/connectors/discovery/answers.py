"""Checks the answers to a `Discover` and an `Initialize`."""

from collections.abc import Callable, Collection, Iterable
from itertools import islice
from typing import Any

from balanced_source.api import AsyncCall, CallFailure, SplitId
from balanced_source.api.split_checks import WrongAnswer
from balanced_source.connectors.answers import faults_of_ids, in_words, refused
from balanced_source.connectors.discovery.values import Discovered, Initialize, SplitT, some
from balanced_source.errors import TransientDiscoveryError
from balanced_source.names import counted


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


def not_started(
    call: Initialize,
    answer: Iterable[SplitT] | CallFailure,
    subscribes: Callable[[SplitId], bool],
) -> Exception | None:
    """Return why splits have no start position yet; None if each one has.

    One that the answer leaves out may have been deleted meanwhile: another listing tells.

    Args:
        call: the question.
        answer: checked.
        subscribes: whether a split is still to be read.
    """
    if isinstance(answer, CallFailure):
        return answer.error
    missing = {s for s in call.split_ids if subscribes(s)} - {split.split_id for split in answer}
    if not missing:
        return None
    return TransientDiscoveryError(
        f"{call.scope}: {counted(len(missing), 'split')} listed, and the beginning is not known:"
        f" {some(sorted(missing))}. Discovery looks again. A split that is still there is"
        f" missing in the connector's answer to {type(call).__name__}",
        scope=call.scope,
    )
