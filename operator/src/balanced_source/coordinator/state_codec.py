"""The enumerator state as a document: what the operator stores before anything takes effect."""

from typing import Any, Final

from balanced_source.api import Json, Source, SplitId
from balanced_source.api.json_values import JSON, json_fault
from balanced_source.coordinator import loads
from balanced_source.coordinator.state import (
    Checkpoint,
    CoordinatorState,
    HostRole,
    HostState,
    Revocation,
    SplitT,
    StateT,
)
from balanced_source.coordinator.tracker import SplitAssignmentTracker
from balanced_source.documents import columns, envelope, report
from balanced_source.documents.assignment import decode_events, encode_events
from balanced_source.documents.splits import decode_splits, encode_splits, encode_tables
from balanced_source.documents.storage import in_host_order
from balanced_source.errors import ContractViolationError
from balanced_source.lifecycles import HostPhase


def _upgrade_1(body: Json) -> Json:
    """Version 2 added what a restart and a second life of a split need.

    History, reclaimed, settings, known_from.
    """
    coordinator = body["coordinator"]
    hosts = [[name, _upgrade_host_1(host)] for name, host in coordinator["hosts"]]
    # Version 1 does not say whether hosts came from former times: a gate waits for all, to be safe.
    added = {"hasHistory": True, "settings": "", "reclaimed": []}
    return {**body, "coordinator": {**coordinator, **added, "hosts": hosts}}


def _upgrade_host_1(host: Any) -> Json:
    is_known = host["phase"] != HostPhase.EXPECTED.value
    waiting = report.upgrade_1(host["report"]) if host["report"] is not None else None
    return {**host, "report": waiting, "knownFrom": int(is_known)}


def _upgrade_2(body: Json) -> Json:
    """Version 3 differs in the enumerator's part, which has a version of its own."""
    return body


def _upgrade_3(body: Json) -> Json:
    """Version 4 added roles of hosts, which may be absent."""
    return body


KIND: Final = envelope.DocumentKind(
    name="EnumeratorState", version=4, upgrades={1: _upgrade_1, 2: _upgrade_2, 3: _upgrade_3}
)


def encode(
    checkpoint: Checkpoint[SplitT, StateT], source: Source[SplitT, StateT], *, uid: str
) -> str:
    """The document of a checkpoint of `source`, for the BalancedSource with that uid.

    Raises:
        ContractViolationError: the enumerator's state cannot be stored.
    """
    state = source.encode_state(checkpoint.enumerator)
    body = {
        "coordinator": _coordinator_to_json(checkpoint.coordinator),
        "enumerator": {
            "version": source.state_version,
            "state": state,
        },
    }
    try:
        return envelope.encode(KIND, uid, body, version=_version(checkpoint.coordinator))
    except (TypeError, ValueError, RecursionError) as error:
        # Looked for now: the state may be large, and is stored often.
        if why := json_fault(state):
            raise ContractViolationError(
                f"encode_state of the source returned what is not JSON: {why}. Return {JSON}"
            ) from error
        raise


def _version(state: CoordinatorState[SplitT]) -> int:
    """The lowest version that can say it.

    An older operator can take over wherever nothing newer is needed.
    """
    return 3 if all(host.role is HostRole.MEMBER for host in state.hosts.values()) else 4


def decode(
    text: str, source: Source[SplitT, StateT], *, uid: str | None = None
) -> Checkpoint[SplitT, StateT]:
    """Read a checkpoint of any version.

    Raises:
        CorruptDocumentError, IncompatibleVersionError: see `envelope.decode`.
    """
    body = envelope.decode(KIND, text, source=uid)

    def build(content: dict[str, Any]) -> Checkpoint[SplitT, StateT]:
        enumerator = content["enumerator"]
        return Checkpoint(
            coordinator=_coordinator_from_json(content["coordinator"], source),
            enumerator=source.decode_state(int(enumerator["version"]), enumerator["state"]),
        )

    return envelope.parse_body(KIND, body, build)


def _coordinator_to_json(state: CoordinatorState[SplitT]) -> Json:
    of_owned = columns.TableEncoder()
    return {
        "hasHistory": state.has_history,
        "lineage": state.lineage,
        "epoch": state.epoch,
        "parallelism": state.parallelism,
        "hosts": [[name, _host_to_json(host)] for name, host in state.hosts.items()],
        "owners": of_owned(state.owners),
        "splits": encode_tables(
            # As reported, not as assigned: reports of active hosts are not part of the state.
            state.positions(state.owners),
            {split_id: state.splits[split_id].attributes() for split_id in state.owners},
            encode_map=of_owned,
        ),
        "uncovered": [
            [epoch, columns.encode_map(owned)]
            for epoch, owned in sorted(state.tracker.by_checkpoint.items())
        ],
        "revoking": {
            "holders": columns.encode_map(
                {s: [r.host, r.epoch] for s, r in state.revoking.items()}
            ),
            "splits": encode_splits({s: r.split for s, r in state.revoking.items()}),
        },
        "retained": columns.encode_ids(state.retained),
        "reclaimed": columns.encode_ids(state.reclaimed),
        "noMoreSplits": sorted(state.no_more_splits),
        "outbox": encode_events(state.outbox),
        "eventsSent": state.events_sent,
        "loads": loads.to_json(state.loads),
        "rebalanceNonce": state.rebalance_nonce,
        "settings": state.settings,
    }


def _coordinator_from_json(data: Any, source: Source[SplitT, StateT]) -> CoordinatorState[SplitT]:
    return CoordinatorState(
        has_history=bool(data["hasHistory"]),
        lineage=int(data["lineage"]),
        epoch=int(data["epoch"]),
        parallelism=int(data["parallelism"]),
        # Drivers number readers by this order, which a document does not keep.
        hosts=in_host_order({name: _host_from_json(host) for name, host in data["hosts"]}),
        owners=columns.decode_map(data["owners"]),
        splits=decode_splits(data["splits"], source),
        tracker=SplitAssignmentTracker(
            by_checkpoint={
                int(epoch): columns.decode_map(owned) for epoch, owned in data["uncovered"]
            }
        ),
        revoking=_revoking_from_json(data["revoking"], source),
        retained=columns.decode_ids(data["retained"]),
        reclaimed=columns.decode_ids(data["reclaimed"]),
        no_more_splits=frozenset(data["noMoreSplits"]),
        outbox=decode_events(data["outbox"]),
        events_sent=int(data["eventsSent"]),
        # Version 2 was never released without them.
        loads=loads.from_json(data.get("loads", [])),
        rebalance_nonce=int(data.get("rebalanceNonce", 0)),
        settings=str(data["settings"]),
    )


def _revoking_from_json(
    data: Any, source: Source[SplitT, StateT]
) -> dict[SplitId, Revocation[SplitT]]:
    splits = decode_splits(data["splits"], source)
    holders = columns.decode_map(data["holders"])
    return {
        s: Revocation(host=host, epoch=int(epoch), split=splits[s])
        for s, (host, epoch) in holders.items()
    }


def _host_to_json(host: HostState) -> Json:
    """A report that waits behind the gate is part of the state.

    One of an active host is stored by its writer.

    That of a lost host is part of it too, or the same document would look like a sign of life after
    a restart.
    """
    waits = host.phase in (HostPhase.RECOVERING, HostPhase.LOST)
    return {
        "incarnation": host.incarnation,
        "phase": host.phase.value,
        "report": report.to_json(host.report) if waits and host.report is not None else None,
        "addressedEpoch": host.addressed_epoch,
        "eventsSeen": host.events_seen,
        "knownFrom": host.known_from,
        # Left out where it says nothing, so that an operator of an older version can take over.
        **({"role": host.role.value} if host.role is not HostRole.MEMBER else {}),
    }


def _host_from_json(data: Any) -> HostState:
    return HostState(
        incarnation=int(data["incarnation"]),
        phase=HostPhase(data["phase"]),
        report=report.from_json(data["report"]) if data["report"] is not None else None,
        addressed_epoch=int(data["addressedEpoch"]),
        events_seen=int(data["eventsSeen"]),
        known_from=int(data["knownFrom"]),
        role=HostRole(data.get("role", HostRole.MEMBER.value)),
    )
