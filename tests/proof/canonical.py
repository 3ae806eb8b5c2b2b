"""Canonical keys of values: values with equal keys behave alike forever, whatever happens to them.

Keys make states comparable, so whatever they leave out must not matter to any later step:

* names that are only compared for equality: ids of calls and numbers of discovery rounds (current
  or stale is kept);
* the order of mappings and sets (rule 5; `rules.order_independence` checks it on the code);
* texts for people: errors, heartbeats, locations;
* how often something failed: it only lengthens a delay, and here every delay may be any;
* how often a split was missing, beyond the number that confirms it;
* what a reader reported at its registration, once its registration has been handled;
* an assignment that a reader host has adopted: only its number is checked again, and who asks for
  more splits;
* reader settings of clusters beyond their names: here a name always means the same cluster.
"""

import dataclasses
import enum
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Final

from balanced_source.api import ReaderInfo, SourceSplit
from balanced_source.connectors.discovery import CONFIRMATIONS, Discover
from balanced_source.connectors.discovery.values import TransientState
from balanced_source.coordinator import SourceCoordinator
from balanced_source.coordinator.context import PendingCall
from balanced_source.documents.report import HostReport
from balanced_source.host import ReaderHost
from proof.values import Runner

Key = Hashable
CallKey = tuple[str, Key, bool]

_ATOMS: Final = (int, str, float, bool, type(None))
_KEYS_BY_TYPE: dict[type, Callable[[Any], Key]] = {}


def key(value: Any) -> Key:
    """The canonical key of a value that states are made of."""
    kind = type(value)
    by_type = _KEYS_BY_TYPE.get(kind)
    if by_type is None:
        by_type = _KEYS_BY_TYPE[kind] = _key_function(kind)
    return by_type(value)


def coordinator_key(coordinator: SourceCoordinator[Any, Any]) -> Key:
    """Of a coordinator between two turns."""
    context = coordinator._context
    return (
        key(coordinator.state),
        tuple(coordinator.state.hosts),  # their order says who runs which reader
        key(coordinator.enumerator.snapshot_state()),
        key(getattr(coordinator.enumerator, "transient", None)),
        tuple(context.readers),
        frozenset(call_keys(coordinator)),
        coordinator._must_persist,
        context.handled_finished,
        key(context.asked),
        context.silent,
    )


def call_keys(coordinator: SourceCoordinator[Any, Any]) -> dict[CallKey, int]:
    """Calls under way and their ids; of equal ones the newest, because two do what one does."""
    rounds = (
        coordinator.enumerator.transient.rounds
        if hasattr(coordinator.enumerator, "transient")
        else {}
    )
    return {
        _call_key(pending, rounds): number
        for number, pending in sorted(coordinator._context.calls.items())
    }


def _call_key(pending: PendingCall, rounds: Mapping[str, int]) -> CallKey:
    call = pending.call
    if isinstance(call, Discover):
        return pending.handler, call.scope, rounds.get(call.scope) == call.round
    return pending.handler, key(call), True


def _key_function(kind: type) -> Callable[[Any], Key]:
    if kind in _ATOMS or kind is type:
        return lambda value: value
    if issubclass(kind, enum.Enum):
        return lambda value: value.name
    if issubclass(kind, Mapping):
        return lambda value: tuple(sorted((k, key(v)) for k, v in value.items()))
    if issubclass(kind, (set, frozenset)):
        return frozenset
    if issubclass(kind, (tuple, list)):
        return lambda value: tuple(map(key, value))
    if issubclass(kind, range):
        return lambda value: (value.start, value.stop, value.step)
    if issubclass(kind, SourceSplit):
        return lambda value: value  # hashable, by its contract
    if dataclasses.is_dataclass(kind):
        return _dataclass_key(kind)
    raise TypeError(f"{kind} has no canonical key")


_LEFT_OUT: Final[Mapping[type, frozenset[str]]] = {
    HostReport: frozenset({"heartbeat", "instance", "location", "metrics"}),
    TransientState: frozenset({"rounds", "failures", "problems", "unstarted", "missing"}),
    ReaderInfo: frozenset({"location", "reported_splits", "retained_splits", "is_first_report"}),
    Runner: frozenset({"settings"}),
}


def _dataclass_key(kind: type) -> Callable[[Any], Key]:
    names = [f.name for f in dataclasses.fields(kind) if f.name not in _LEFT_OUT.get(kind, ())]
    if kind is TransientState:
        return lambda state: (
            *(key(getattr(state, name)) for name in names),
            *_transient_key(state),
        )
    if kind is ReaderHost:
        return lambda host: _reader_host_key(host, names)
    if kind is Runner:
        return lambda runner: (*(key(getattr(runner, name)) for name in names), _clusters(runner))
    return lambda value: tuple(key(getattr(value, name)) for name in names)


def _transient_key(state: TransientState) -> tuple[Key, ...]:
    missing = tuple(
        sorted((split_id, min(count, CONFIRMATIONS)) for split_id, count in state.missing.items())
    )
    told = frozenset(state.failures), frozenset(state.problems), frozenset(state.unstarted)
    return *told, missing


def _clusters(runner: Runner) -> Key:
    return frozenset(runner.settings.get("kafka", {}).get("clusters", ()))


def _reader_host_key(host: ReaderHost, names: list[str]) -> Key:
    rest = tuple(key(getattr(host, name)) for name in names if name != "assignment")
    assignment = host.assignment
    if assignment is None or assignment.epoch > host.durable.epoch:
        return (*rest, key(assignment))
    asks = (assignment.look_ahead, assignment.no_more_splits) if assignment.look_ahead else ()
    return (*rest, (assignment.lineage, assignment.epoch, *asks))
