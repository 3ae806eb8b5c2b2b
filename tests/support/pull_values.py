"""Values of the world in which readers ask for splits."""

import json
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from balanced_source.api import SplitId
from balanced_source.connectors.hybrid import HybridSplitEnumerator
from balanced_source.connectors.pull import PullingSplitEnumerator
from balanced_source.connectors.pull.values import Waiting
from balanced_source.coordinator import (
    SourceCoordinator,
)
from balanced_source.documents import stream_offset
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.host import ReaderHost
from proof.canonical import key

EMPTY = json.dumps(stream_offset.to_json(StreamOffset()))

Label = tuple[Any, ...]


class Budget(NamedTuple):
    """Disturbances that may still happen.

    The operator dies, the driver dies, the user rescales, the source moves with its documents to
    another Kubernetes cluster.
    """

    operator: int = 0
    driver: int = 0
    rescales: int = 0
    moves: int = 0


NOTHING: Final = Budget()


class Operator:
    """A running operator; the key of its coordinator is made once."""

    def __init__(self, coordinator: SourceCoordinator[Any, Any]) -> None:
        self.coordinator = coordinator
        self.key = _coordinator_key(coordinator)


class Driver:
    """A running driver; its key is made once.

    Args:
        host: its state machine.
        at: newest offset in the log that it knows.
        is_busy: whether a micro-batch runs.
    """

    def __init__(self, host: ReaderHost, at: str, *, is_busy: bool = False) -> None:
        self.host, self.at, self.is_busy = host, at, is_busy
        self.key = (key(host), at, is_busy)


@dataclass(frozen=True, slots=True)
class World:
    """What there is, at one moment.

    Attributes:
        operator: None while it is down.
        stored: the state.
        published: the assignment.
        report: of the driver.
        driver: None while it is down.
        log: last offset but one, last offset, and whether that is committed.
        delivered: split → first number that no committed micro-batch has.
        parallelism: what the user wants.
        incarnation: of the newest driver.
        budget: see `Budget`.
        problem: the rule that is broken.
    """

    operator: Operator | None = None
    stored: str | None = None
    published: str | None = None
    report: str | None = None
    driver: Driver | None = None
    log: tuple[str, str, bool] = (EMPTY, EMPTY, True)
    delivered: tuple[tuple[SplitId, int], ...] = ()
    parallelism: int = 1
    incarnation: int = 0
    budget: Budget = NOTHING
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """Result of a search.

    Attributes:
        worlds: how many were seen.
        problem: the first broken rule; None if all hold.
        trace: what led there.
    """

    worlds: int
    problem: str | None = None
    trace: tuple[Label, ...] = ()


class Turn(NamedTuple):
    """What a turn of the operator leads to.

    The operator after it, and the documents that it writes, in their order.
    """

    operator: Operator
    writes: tuple[tuple[str, str], ...]


def _coordinator_key(coordinator: SourceCoordinator[Any, Any]) -> Any:
    enumerator = coordinator.enumerator
    pulling: Any = enumerator.part if isinstance(enumerator, HybridSplitEnumerator) else enumerator
    context = coordinator._context
    is_pulling = isinstance(pulling, PullingSplitEnumerator)
    waiting = pulling.waiting if is_pulling else Waiting()
    asked = [getattr(pending.call, "call", pending.call) for pending in context.calls.values()]
    numbers = [getattr(call, "round", None) for call in asked]
    rounds = zip([pending.handler for pending in context.calls.values()], numbers, strict=True)
    return (
        key(coordinator.state),
        key(enumerator.snapshot_state()),
        tuple(sorted(waiting.counts.items())),
        tuple(context.readers),
        tuple(sorted((handler, number == waiting.round) for handler, number in rounds)),
        coordinator._must_persist,
        context.handled_finished,
        tuple(sorted(context.asked.items())),
        tuple(sorted(getattr(enumerator, "asked", {}).items())),
        None if is_pulling else key(pulling.transient),
    )
