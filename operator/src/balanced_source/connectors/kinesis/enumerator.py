"""The discovering enumerator, with an order.

Children of a shard are read when all its records are read.

A shard that is read to its end stays assigned, without work, until a reader holds one of its
children. Then it leaves the state: that a descendant was begun proves that it was read. So no list
of read shards is kept, and the order holds across restarts, lost states and queries without an
operator, whose only memory is the Spark checkpoint.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from balanced_source.api import ReaderInfo, SplitId
from balanced_source.connectors.discovery import (
    CONFIRMATIONS,
    Discovered,
    DiscoveringSplitEnumerator,
    recreated,
    some,
)
from balanced_source.connectors.discovery.reported import scopes_held
from balanced_source.connectors.discovery.values import is_read
from balanced_source.connectors.kinesis.contract import DiscoveredShards, ShardDiscovery
from balanced_source.connectors.kinesis.later import begun_later
from balanced_source.connectors.kinesis.lineage import Lineage
from balanced_source.connectors.kinesis.split import ShardSplit
from balanced_source.errors import ContractViolationError, RefusedDiscoveryError
from balanced_source.names import counted
from balanced_source.reasons import Reason


class ShardEnumerator(DiscoveringSplitEnumerator[ShardSplit]):
    """See the module."""

    source: ShardDiscovery
    _lineage: Lineage = Lineage(shards={})
    """Of the listing that is taken in."""
    _begun: frozenset[SplitId] = frozenset()
    """Shards of the listed stream that have a position, also if they are not listed any more."""
    _unproven: frozenset[SplitId] = frozenset()
    """Shards that wait for a listing, see `add_readers`."""

    def add_readers(self, subtask_ids: Sequence[int]) -> None:
        registered = self.context.registered_readers()
        if unproven := self._unread_by([registered[subtask_id] for subtask_id in subtask_ids]):
            self._unproven |= unproven
            self._confirm(unproven)
        super().add_readers(subtask_ids)

    def _unread_by(self, readers: Sequence[ReaderInfo[ShardSplit]]) -> frozenset[SplitId]:
        """Return shards that no host holds, and that others may have read since they were noted.

        The parents in a listing tell.
        """
        # A host that gave a shard away retains its position, and may not have heard of its end.
        retained = {split.split_id for r in readers for split in r.retained_splits}
        # Of readers that the state does not know, the state may be an older copy.
        scopes = scopes_held((r for r in readers if r.is_first_report), self.source)
        alone = {s for s in self.state.unassigned if self.source.scope_of(s) in scopes}
        owned, positions = self.context.current_assignments(), self.context.split_positions()
        return frozenset(s for s in retained | alone if s not in owned and s not in positions)

    def handle_finished(self, split_ids: Sequence[SplitId]) -> None:
        super().handle_finished(split_ids)
        for scope in sorted(
            {self.source.scope_of(s) for s in split_ids}.intersection(self.source.scopes())
        ):
            # Its children may be read now. Until the next discovery they would wait for nothing.
            self._ask(scope, delay=0.0)

    def _scope_listed(self, scope: str, result: Discovered) -> None:
        if not isinstance(result, DiscoveredShards):
            raise ContractViolationError(f"a listing of shards returned {type(result).__name__}")
        result = self._as_spelled(scope, result)
        # The start option counts in the first discovery only, and shards expire later.
        is_first = scope not in self.state.discovered
        if is_first and (why := self.source.wrong_start(scope, result.shards)) is not None:
            self._scope_failed(scope, why)
            return
        self._unproven = frozenset(s for s in self._unproven if self.source.scope_of(s) != scope)
        self._drop_read(scope, result)
        self._lineage = lineage = self._lineage_of(scope, result)
        # The service lists no shard whose records are all gone. With `Fail` someone has to decide.
        expired = frozenset() if self.source.may_lose else self._lost(scope, result)
        super()._scope_listed(scope, self._readable(scope, result, lineage, expired))
        self._release(lineage)

    def _look_up(self, scope: str, split_ids: tuple[SplitId, ...]) -> None:
        if scope not in self.state.discovered:
            super()._look_up(scope, split_ids)
            return
        for later, group in begun_later(split_ids, self._lineage, self._attributes()).items():
            call = self.source.initialize_later(scope, group, later)
            self.transient = self.transient.looks_up(call)
            self.context.call_async(call, self.handle_initialized)

    def _attributes(self) -> dict[SplitId, Mapping[str, Any]]:
        """Return the attributes of the shards that were begun, but not of those looked up now."""
        owned = self.context.current_assignments()
        waiting = {
            s: split.attributes() for s, split in self._waiting().items() if s in self._begun
        }
        return waiting | {s: self.context.assigned_attributes(s) for s in self._begun if s in owned}

    def _scope_failed(self, scope: str, error: Exception) -> None:
        unconfirmed = self.transient.unconfirmed | self._unproven
        self.transient = replace(self.transient, unconfirmed=unconfirmed)
        super()._scope_failed(scope, self._deleted(scope, error))

    def _deleted(self, scope: str, error: Exception) -> Exception:
        """Return the error of a stream that is read and does not exist any more.

        One answer may be wrong, so the stream must be missing several times in a row.
        """
        absences = self.transient.absences.get(scope, 0) + 1
        is_read = bool(self._held(scope))
        if _is_gone(error) and is_read and absences >= self.source.failure_threshold:
            return _gone(scope, error, may_lose=self.source.may_lose)
        return error

    def problems(self) -> Mapping[str, Exception]:
        return {
            scope: _awaited(error) if self._is_awaited(scope, error) else error
            for scope, error in super().problems().items()
        }

    def blocked(self) -> Mapping[str, Exception]:
        found = super().blocked()
        return {s: error for s, error in found.items() if not self._is_awaited(s, error)}

    def _is_awaited(self, scope: str, error: Exception) -> bool:
        """Whether a stream that was read is gone, and is read again when it is there again.

        Its name is right, so a query that is started meanwhile waits, too.
        """
        return _is_gone(error) and self.source.may_lose and bool(self._held(scope))

    def _readable(
        self, scope: str, result: DiscoveredShards, lineage: Lineage, expired: frozenset[SplitId]
    ) -> Discovered:
        """What may be read.

        Shards that expired unread stay: their children would hide what is lost.
        """
        # Of a former stream nothing can be read on, and none of the new one without consent.
        if not self.source.may_lose and (former := self._of_former_stream(scope, result)):
            return replace(result, split_ids=self._held(scope), problem=_recreated(scope, former))
        return replace(
            result,
            # Listed as if they were there: two listings without them would remove them and free the
            # children.
            split_ids=lineage.readable() | expired,
            problem=_expired(scope, expired) if expired else result.problem,
        )

    def _of_former_stream(self, scope: str, result: DiscoveredShards) -> frozenset[SplitId]:
        """Shards of a stream that was deleted since; the new stream may have other ids."""
        # All shards of a stream have the identity of the stream.
        created = next(iter(result.identities.values()), None)
        known = self._held(scope) | self._retained(scope)
        identities = {} if created is None else dict.fromkeys(known, created)
        return recreated.replaced(identities, self.state, self.context)

    def _as_spelled(self, scope: str, result: DiscoveredShards) -> DiscoveredShards:
        """Return a listing with the ids that shards are known by.

        The user may have changed the name of a stream to its ARN, or back.
        """
        known = self._held(scope) | self._retained(scope)
        before = {s for s in known if s[0] != scope}
        if not before:
            return result
        other = before & self._of_former_stream(scope, result)
        if same := sorted(before - other):
            self.state = replace(self.state, discovered=self.state.discovered | {scope})
            return result.spelled(str(same[0][0]))
        # The account or the region is another one: it is another stream, which is new.
        self._remove(other, "not subscribed any more", forget=True)
        if other == known:
            self.state = replace(self.state, discovered=self.state.discovered - {scope})
        return result

    def _retained(self, scope: str) -> frozenset[SplitId]:
        return frozenset(s for s in self.state.retained if self.source.scope_of(s) == scope)

    def _lineage_of(self, scope: str, result: DiscoveredShards) -> Lineage:
        # Shards of a former stream say nothing of their namesakes' ancestors.
        former = self._of_former_stream(scope, result)
        held = self._held(scope) - former
        retained = self._retained(scope) - former
        self._begun = held | retained
        # What expired while its stream was out of the source must not hold back its children.
        if self.source.may_lose:
            retained &= result.shards.keys()
        # The start option counts in the first discovery only: a shard that closes later must be
        # read.
        skipped = (
            frozenset() if scope in self.state.discovered else self.source.skipped(result.shards)
        )
        return Lineage(
            shards=result.shards,
            # A retained shard was begun, so its ancestors were read.
            held=held | retained,
            # At its end without an owner: a reader has reported that, and no one is told of it.
            finished=(self.state.finished & held)
            | {s for s, split in self._waiting().items() if s in self._begun and is_read(split)},
            skipped=skipped,
        )

    def _held(self, scope: str) -> frozenset[SplitId]:
        known = (
            *self.context.current_assignments(),
            *self.state.unassigned,
            *self.transient.in_flight,
        )
        return frozenset(s for s in known if self.source.scope_of(s) == scope)

    def _drop_read(self, scope: str, result: DiscoveredShards) -> None:
        """Drop unread shards that hosts have read and let go of: the state is an older copy.

        That a Spark checkpoint holds a descendant of a shard, and none holds the shard, proves it.
        """
        positions, former = self.context.split_positions(), self._of_former_stream(scope, result)
        held = [s for s in self._held(scope) - former if s in positions]
        waiting = {s: split for s, split in self._waiting().items() if s not in positions}
        begun = Lineage(shards=result.shards).with_ancestors(held) if waiting else frozenset()
        gone = {s for s, x in waiting.items() if s in begun and s not in former and not is_read(x)}
        if not gone:
            return
        state = self.state
        self.state = replace(
            state,
            unassigned={s: x for s, x in state.unassigned.items() if s not in gone},
            preferred={s: o for s, o in state.preferred.items() if s not in gone},
            retained={s: entry for s, entry in state.retained.items() if s not in gone},
        )
        self.context.forget_splits(gone)
        self.context.report(
            Reason.SPLITS_REMOVED,
            f"{counted(len(gone), 'shard')} of an older state had been read since, as the Spark"
            f" checkpoints tell: {some(sorted(gone))}",
        )

    def _lost(self, scope: str, result: DiscoveredShards) -> frozenset[SplitId]:
        """Return the shards that are not retained, and were not read to their end."""
        known = self._held(scope) | self._retained(scope)
        absent = known - self.transient.in_flight - self.state.finished - result.shards.keys()
        owned, waiting = self.context.current_assignments(), self._waiting()
        lost = frozenset(
            s
            for s in absent
            if not is_read(self.context.assigned_split(s) if s in owned else waiting[s])
        )
        problem = self.transient.problems.get(scope)
        if isinstance(problem, RefusedDiscoveryError) and problem.reason == Reason.SPLITS_LOST:
            return lost
        # One answer may be wrong, and a query without an operator ends. Until they are missing
        # again they are held, so their children wait.
        missing = self.transient.missing
        return frozenset(s for s in lost if missing.get(s, 0) + 1 >= CONFIRMATIONS)

    def _waiting(self) -> dict[SplitId, ShardSplit]:
        """Return the shards that have a position and no owner."""
        retained = {s: entry.split for s, entry in self.state.retained.items()}
        return retained | dict(self.state.unassigned)

    def _release(self, lineage: Lineage) -> None:
        """Let go of shards that are read, once a host's checkpoint holds one of their children."""
        # In the state is not enough: only what a host reports is in a Spark checkpoint, from which
        # the order is known should the state be lost.
        positions = self.context.split_positions()
        reported = replace(lineage, held=[s for s in lineage.held if s in positions])
        gone = [s for s in reported.replaced() if self._is_owned(s)]
        if gone:
            self.context.revoke_splits(gone)
            self.context.forget_splits(gone)
            self.state = replace(self.state, finished=self.state.finished.difference(gone))

    def _is_owned(self, split_id: SplitId) -> bool:
        return split_id in self.context.current_assignments()


def _recreated(scope: str, shards: Collection[SplitId]) -> RefusedDiscoveryError:
    return RefusedDiscoveryError(
        f"stream {scope} was deleted and recreated, and is not read: readers held"
        f" {counted(len(shards), 'shard')} of the former stream,"
        f" {some([(s[1],) for s in sorted(shards)])}. What was not read of it is"
        " lost. If another region, endpoint or account is set than before, restore it; otherwise"
        " set onDataLoss to Continue to read the new stream",
        scope=scope,
        reason=Reason.SPLITS_RECREATED,
        is_fatal=True,
    )


def _gone(scope: str, error: Exception, *, may_lose: bool) -> RefusedDiscoveryError:
    advice = (
        "When it is created again, it is read from its oldest record (onDataLoss: Continue)"
        if may_lose
        else "Set onDataLoss to Continue to wait until it is created again, or take it out of"
        " streams"
    )
    return RefusedDiscoveryError(
        f"stream {scope} was deleted while it was read. What was not read of it is lost. {advice}."
        f" {error}",
        scope=scope,
        reason=Reason.NOT_FOUND,
        is_hopeless=True,
        is_fatal=not may_lose,
    )


def _is_gone(error: Exception) -> bool:
    return isinstance(error, RefusedDiscoveryError) and error.is_hopeless


def _awaited(error: Exception) -> Exception:
    if not isinstance(error, RefusedDiscoveryError):
        return error
    return RefusedDiscoveryError(str(error), scope=error.scope, reason=error.reason)


def _expired(scope: str, shards: Collection[SplitId]) -> RefusedDiscoveryError:
    names = some([(s[1],) for s in sorted(shards)])
    return RefusedDiscoveryError(
        f"stream {scope} does not retain the unread rest of {counted(len(shards), 'shard')} any"
        f" more: {names}. These records are lost, and the children are not read. Set onDataLoss to"
        " Continue to read the children",
        scope=scope,
        reason=Reason.SPLITS_LOST,
        is_fatal=True,
    )
