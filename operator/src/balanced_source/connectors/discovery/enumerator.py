"""The enumerator; see the package."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Generic, Self

from balanced_source.api import CallFailure, Source, SplitEnumeratorContext, SplitId
from balanced_source.backoff import backoff
from balanced_source.connectors.answers import checked_splits
from balanced_source.connectors.discovery import recreated
from balanced_source.connectors.discovery.answers import checked_discovery, not_started
from balanced_source.connectors.discovery.contract import SplitDiscovery
from balanced_source.connectors.discovery.gone import (
    before_start,
    cut_short,
    loss,
    never_there,
    retained_and_absent,
    unread,
)
from balanced_source.connectors.discovery.placing import PlacingEnumerator
from balanced_source.connectors.discovery.reported import (
    forget_unwanted,
    reopened,
    scopes_held,
    take_reported,
    without_guesses,
)
from balanced_source.connectors.discovery.values import (
    Alarm,
    Discover,
    Discovered,
    DiscoveryState,
    Initialize,
    Retained,
    SplitT,
    is_read,
    some,
)
from balanced_source.lifecycles import SPLIT, SplitEvent, SplitPhase
from balanced_source.names import counted
from balanced_source.reasons import Reason

CONFIRMATIONS: Final = 2
"""Successive discoveries that must miss a split before it counts as removed."""

CONFIRMATION_DELAY: Final = 5.0
"""Seconds until a missing split is looked for again, instead of a whole discovery interval."""

MAX_BACKOFF: Final = 60.0
"""Seconds between attempts at a scope that keeps failing, at most."""


class DiscoveringSplitEnumerator(PlacingEnumerator[SplitT], Generic[SplitT]):
    """See the module."""

    # --- life cycle -------------------------------------------------------------------------------

    def start(self) -> None:
        self._agree_with_source()
        for scope in self.source.scopes():
            self._ask(scope, delay=0.0)
        self._set_retention_alarm()

    def snapshot_state(self) -> DiscoveryState[SplitT]:
        return self.state

    def fork(self, context: SplitEnumeratorContext[SplitT]) -> Self:
        copy = type(self)(context, self.source, self.state)
        copy.transient = self.transient
        return copy

    def problems(self) -> Mapping[str, Exception]:
        return self.transient.found_problems(self.source.failure_threshold)

    def blocked(self) -> Mapping[str, Exception]:
        return {
            scope: problem
            for scope, problem in self.problems().items()
            if scope in self.transient.failures or scope in self.transient.unstarted
        }

    def undiscovered(self) -> frozenset[str]:
        return frozenset(self.source.scopes()) - self.state.discovered

    def pending_splits(self) -> int:
        return len(self.state.unassigned) + len(self.transient.in_flight)

    def is_finished(self) -> bool:
        return self._is_complete() and self._is_all_read()

    # --- readers ----------------------------------------------------------------------------------

    def add_reader(self, subtask_id: int) -> None:
        self.add_readers((subtask_id,))

    def add_readers(self, subtask_ids: Sequence[int]) -> None:
        registered = self.context.registered_readers()
        readers = [registered[subtask_id] for subtask_id in subtask_ids]
        waiting, listed = (
            self.state.unassigned.keys(),
            self.transient.in_flight | self.transient.doubtful,
        )
        # A scope that readers hold splits of is discovered. A look-up under way still has its first
        # start option, such as Latest.
        self._void_look_ups(scopes_held(readers, self.source))
        owned, until = self.context.current_assignments(), self._retained_until()
        self.state, unwanted = take_reported(self.state, readers, owned, self.source, until=until)
        self.state = reopened(self.state, readers, self.context)
        forget_unwanted(self.context, unwanted)
        self._confirm((self.state.unassigned.keys() - waiting) & listed)
        self._set_retention_alarm()
        # At the end: all reports must be taken in before anything is given out.
        self._assign()

    def _confirm(self, reported: Collection[SplitId]) -> None:
        """Look again before reported splits are assigned.

        What was listed under their ids may be others by now.
        """
        self.transient = replace(
            self.transient, unconfirmed=self.transient.unconfirmed.union(reported)
        )
        for scope in sorted({self.source.scope_of(s) for s in reported}):
            self._ask(scope, delay=0.0)

    def handle_history(self, guessed: Collection[SplitId]) -> None:
        """Readers know better.

        What they hold counts, and what is newer than that begins at its beginning.
        """
        readers = self.context.registered_readers().values()
        held = scopes_held(readers, self.source)
        self.state, dropped = without_guesses(self.state, readers, guessed, self.source)
        self.context.forget_splits(dropped)
        # What was dropped as a guess is found again, and begins at its beginning.
        for scope in self.source.scopes():
            if scope in held:
                self._ask(scope, delay=0.0)

    def handle_older_checkpoint(self) -> None:
        """As if the state were lost: only what the copy holds or retains is where it says."""
        before = self.state.unassigned.keys()
        self.handle_history(before)
        again = before - self.state.unassigned.keys()
        self.state = replace(self.state, finished=self.state.finished - again)

    def _void_look_ups(self, scopes: Collection[str]) -> None:
        """Readers told more of these scopes than was known when start positions were asked for.

        Ask again.
        """
        before, self.transient = self.transient, self.transient.without_look_ups(scopes)
        for scope in sorted(before.looked_at - self.transient.looked_at):
            self._ask(scope, delay=0.0)

    def add_splits_back(self, splits: Sequence[SplitT], subtask_id: int) -> None:
        self._void_look_ups(
            {
                self.source.scope_of(s.split_id)
                for s in splits
                if s.split_id in self.transient.in_flight
            }
        )
        wanted = {s.split_id: s for s in splits if self.source.subscribes(s.split_id)}
        if len(wanted) < len(splits):
            self._dismiss({s.split_id: s for s in splits if s.split_id not in wanted}, subtask_id)
        self.state = replace(
            self.state,
            unassigned={**self.state.unassigned, **wanted},
            preferred={**self.state.preferred, **dict.fromkeys(wanted, subtask_id)},
            # It may have to be read on from an older position.
            finished=self.state.finished.difference(s.split_id for s in splits if not is_read(s)),
        )

    def _dismiss(self, splits: Mapping[SplitId, SplitT], subtask_id: int) -> None:
        """Splits come back that the user does not want now.

        Their positions stay for a return, if asked for.
        """
        if self.source.retention > 0:
            until = self._retained_until()
            kept = {s: Retained(split=x, until=until) for s, x in splits.items()}
            self.state = replace(self.state, retained={**self.state.retained, **kept})
            self._set_retention_alarm()
        else:
            self.context.forget_splits(splits)
        names = sorted(splits)
        count = counted(len(names), "split")
        text = f"{count} of reader {subtask_id} not subscribed: {some(names)}"
        self.context.report(Reason.SPLITS_DROPPED, text)

    def handle_renumbered(self, numbers: Mapping[int, int]) -> None:
        preferred = {s: numbers[o] for s, o in self.state.preferred.items() if o in numbers}
        self.state = replace(self.state, preferred=preferred)

    def handle_revoked(self, splits: Sequence[SplitT]) -> None:
        self.state = self.state.with_final(splits)
        known = self.state.retained.keys() | self.state.unassigned.keys()
        changed = {self.source.scope_of(x.split_id) for x in splits if x.split_id not in known}
        # They may exist again as something else, which waited for this: look now, not in minutes.
        for scope in sorted(changed.intersection(self.source.scopes())):
            self._ask(scope, delay=0.0)
        if self.source.paused_scopes():
            self._assign()

    def handle_finished(self, split_ids: Sequence[SplitId]) -> None:
        fresh = [s for s in split_ids if s not in self.state.finished]
        if fresh:
            self.state = replace(self.state, finished=self.state.finished.union(fresh))

    def handle_source_change(self, source: Source[SplitT, DiscoveryState[SplitT]]) -> None:
        if not isinstance(source, SplitDiscovery):
            super().handle_source_change(source)
            return
        before, self.source = self.source, source
        same = frozenset(
            scope
            for scope in self.transient.answered.intersection(source.scopes(), before.scopes())
            # Where the question is the same, the former answer still counts and assignment goes on.
            if source.discover(scope, 0) == before.discover(scope, 0)
        )
        self.transient = self.transient.asked_otherwise(same)
        self._agree_with_source()
        self._set_retention_alarm()
        for scope in source.scopes():
            self._ask(scope, delay=0.0)
        self._assign()

    def _agree_with_source(self) -> None:
        """Whether the source changed just now or while no one was there.

        What it does not ask for any more goes.
        """
        known = {*self.context.current_assignments(), *self.state.unassigned}
        self._remove({s for s in known if not self.source.subscribes(s)}, "not subscribed any more")
        self._keep_scopes(frozenset(self.source.scopes()))
        policy = self.source.assigner.identity
        if policy != self.state.assigner:
            # Splits move for a policy that a user chose, not for a state that names none (version
            # 1).
            is_other = self.state.assigner is not None
            self.state = replace(
                self.state, assigner=policy, rebalance_due=self.state.rebalance_due or is_other
            )

    def _keep_scopes(self, scopes: frozenset[str]) -> None:
        """Forget what is known about scopes that are gone, and in time their discovery."""
        self.transient = self.transient.within(scopes, self.source.scope_of)
        retained = {self.source.scope_of(s) for s in self.state.retained}
        self.state = self.state.of_scopes(
            scopes, retained=retained, now=self.context.now(), until=self._retained_until()
        )

    # --- discovery --------------------------------------------------------------------------------

    def handle_discovery(self, call: Discover, result: Discovered | CallFailure) -> None:
        """Completion of a `Discover`."""
        scope = call.scope
        # An answer that was overtaken by a newer question may show an older state of the scope.
        if self.transient.rounds.get(scope) != call.round or scope not in self.source.scopes():
            return
        self.transient = self.transient.confirmed(scope, self.source.scope_of)
        result = checked_discovery(call, result, self.context.current_assignments())
        if isinstance(result, CallFailure):
            self._scope_failed(scope, result.error)
        else:
            self._scope_listed(scope, result)
        self._assign()

    def handle_initialized(self, call: Initialize, result: Iterable[SplitT] | CallFailure) -> None:
        """Completion of an `Initialize`.

        Ignored if its scope was taken out of the source meanwhile.
        """
        # A reader has reported these splits meanwhile, or its scope is gone: the answer is a guess
        # now.
        if not self.transient.is_looking_up(call):
            return
        self.transient = self.transient.looked_up(call)
        result = checked_splits(call, result, frozenset(call.split_ids))
        started: list[SplitT] = [] if isinstance(result, CallFailure) else list(result)
        # The subscription may have changed while the start was looked up.
        fresh = {s.split_id: s for s in started if self.source.subscribes(s.split_id)}
        self.state = replace(self.state, unassigned={**self.state.unassigned, **fresh})
        for text in before_start(fresh.values(), self.state.discovered, call, self.source):
            self.context.report(Reason.RECORDS_GONE, text, warning=True)
        if (error := not_started(call, result, self.source.subscribes)) is None:
            self.transient = self.transient.started(call.scope)
            self._mark_discovered(call.scope)
        else:
            # Its first discovery is not over: the splits that have no start must still start where
            # the user said.
            self.transient = self.transient.lacks(call.scope, error)
            times, _ = self.transient.unstarted[call.scope]
            self._ask(call.scope, delay=backoff(times, first=1.0, longest=MAX_BACKOFF))
        self._assign()

    def handle_alarm(self, _call: Alarm, _result: Any) -> None:
        """A retention deadline may have passed."""
        now = self.context.now()
        over = [s for s, entry in self.state.retained.items() if entry.until <= now]
        if over:
            left = {s: e for s, e in self.state.retained.items() if s not in over}
            self.state = replace(self.state, retained=left)
            self.context.forget_splits(over)
            text = f"positions of {counted(len(over), 'removed split')} dropped: {some(over)}"
            self.context.report(Reason.RETENTION_ENDED, text)
            self._assign()
        self._keep_scopes(frozenset(self.source.scopes()))
        self._set_retention_alarm()

    def _ask(self, scope: str, *, delay: float) -> None:
        number = self.transient.rounds.get(scope, 0) + 1
        self.transient = replace(self.transient, rounds={**self.transient.rounds, scope: number})
        self.context.call_async(
            self.source.discover(scope, number), self.handle_discovery, initial_delay=delay
        )

    def _scope_failed(self, scope: str, error: Exception) -> None:
        threshold = self.source.failure_threshold
        self.transient = self.transient.failed(scope, error, threshold=threshold)
        failures = self.transient.failures[scope]
        self._ask(scope, delay=backoff(failures, first=1.0, longest=MAX_BACKOFF))

    def _scope_listed(self, scope: str, result: Discovered) -> None:
        awaited = never_there(result.absent, self.state, self.context)
        self.transient = self.transient.listed(scope, result).awaiting(scope, awaited)
        # First what was recreated: a new split must not inherit anything of the former one.
        listed = self._without_replaced(scope, result)
        unsure = self._find_removed(scope, listed, result)
        self._find_new(scope, listed)
        self._ask_again(scope, unsure=unsure, has_problem=result.problem is not None)

    def _ask_again(self, scope: str, *, unsure: bool, has_problem: bool) -> None:
        interval = None if self.source.discovers_once else self.source.discovery_interval
        if unsure or has_problem:
            self._ask(scope, delay=min(interval or CONFIRMATION_DELAY, CONFIRMATION_DELAY))
        elif interval is not None:
            self._ask(scope, delay=interval)

    def _without_replaced(self, scope: str, result: Discovered) -> frozenset[SplitId]:
        """What is listed, less what must not be read yet.

        A former split of the same id has to be let go of first.
        """
        replaced = recreated.replaced(result.identities, self.state, self.context)
        lost = recreated.lost(replaced, self.state, self.context, self.source)
        if begun := replaced - lost:
            # Told before the removal, which drops the positions that the message names.
            self._report_gone(begun, exists=True)
            # Should a host still report a former one of these, another discovery confirms it first.
            self.transient = replace(self.transient, doubtful=self.transient.doubtful | begun)
            self._remove(
                begun,
                "recreated, and read from the beginning as soon as readers let go",
                forget=True,
            )
        if not lost:
            return result.split_ids
        # With `Fail` the new ones are not read: someone has to decide about the lost records.
        problem = recreated.refusal(scope, lost, self.state, self.context, self.source)
        self.transient = replace(
            self.transient, problems={**self.transient.problems, scope: problem}
        )
        held = {*self.context.current_assignments(), *self.state.unassigned}
        return result.split_ids - (lost - held)

    def _find_removed(self, scope: str, listed: frozenset[SplitId], result: Discovered) -> bool:
        """Count known splits that are not listed.

        True if some are missing but not yet confirmed as removed.
        """
        held = {*self.context.current_assignments(), *self.state.unassigned}
        retained = (
            retained_and_absent(scope, result, self.state, self.transient, self.source) - held
        )
        absent = result.without_refused(
            {s for s in held - listed if self.source.scope_of(s) == scope} | retained
        )
        others = {
            s: n for s, n in self.transient.missing.items() if self.source.scope_of(s) != scope
        }
        # One blind discovery must not remove what exists: a broker may not list it for a moment.
        counts = {s: self.transient.missing.get(s, 0) + 1 for s in absent}
        removed = {s for s, count in counts.items() if count >= CONFIRMATIONS}
        if cut := cut_short(removed, self.state, self.context, self.source):
            self.transient = self.transient.noted(scope, loss(scope, cut.values()))
            removed -= cut.keys()
        self.transient = replace(
            self.transient,
            missing={**others, **{s: n for s, n in counts.items() if s not in removed}},
        )
        # Told before the removal, which drops the positions that the message names.
        self._report_gone(removed, exists=False)
        self._remove(removed - retained, "not listed any more")
        self.transient = replace(
            self.transient, named=(self.transient.named | removed) & self.state.retained.keys()
        )
        return len(removed) < len(absent)

    def _find_new(self, scope: str, listed: frozenset[SplitId]) -> None:
        state = self.state
        moved = listed
        for ids in (
            self._in(phase) for phase in SplitPhase if not SPLIT.allows(phase, SplitEvent.LISTED)
        ):
            moved = frozenset(s for s in moved if s not in ids) if ids else moved
        returning = moved & state.retained.keys()
        # A former split of this id must be let go of first, or it would have two readers.
        leaving = {s for s in moved - returning if self.context.is_revoking(s)}
        self.transient = self.transient.awaits(scope, leaving)
        if returning:
            self.state = state.with_returned(returning)
            self.context.report(
                Reason.SPLITS_RETURNED,
                f"{counted(len(returning), 'split')} continued: {some(sorted(returning))}",
            )
        if fresh := tuple(sorted(moved - returning - leaving)):
            self._look_up(scope, fresh)
        else:
            self.transient = self.transient.started(scope)
        self._mark_discovered(scope)

    def _look_up(self, scope: str, split_ids: tuple[SplitId, ...]) -> None:
        is_first = scope not in self.state.discovered
        call = self.source.initialize(scope, split_ids, is_first=is_first)
        self.transient = self.transient.looks_up(call)
        self.context.call_async(call, self.handle_initialized)

    def _in(self, phase: SplitPhase) -> Collection[SplitId]:
        """Ids of the splits in a phase; none for phases that the coordinator alone knows."""
        match phase:
            case SplitPhase.IN_FLIGHT:
                return self.transient.in_flight
            case SplitPhase.UNASSIGNED:
                return self.state.unassigned.keys()
            case SplitPhase.ASSIGNED:
                return self.context.current_assignments().keys()
            case SplitPhase.RETAINED:
                return self.state.retained.keys()
            case _:
                return ()

    def _mark_discovered(self, scope: str) -> None:
        # From now on new splits start at their beginning, whatever the start option says
        # (FLINK-32019).
        if scope not in self.state.discovered and self.transient.is_settled(scope):
            self.state = replace(self.state, discovered=self.state.discovered | {scope})

    # --- removal ----------------------------------------------------------------------------------

    def _remove(self, removed: Collection[SplitId], why: str, *, forget: bool = False) -> None:
        """Take splits out; their positions are retained for a return, unless nothing can return."""
        if not removed:
            return
        gone, keep = frozenset(removed), self.source.retention > 0 and not forget
        owned = self.context.current_assignments()
        last = {s: self.context.assigned_split(s) for s in gone if s in owned}
        last |= {s: x for s, x in self.state.unassigned.items() if s in gone}
        # After the last positions were taken: the context forgets them.
        self.context.revoke_splits(gone, retain=keep)
        # What no one has read has no position to keep, only a start that was looked up.
        kept = last if keep and self.context.has_reports() else {}
        self.context.forget_splits(gone - kept.keys())
        until = self._retained_until()
        retained = {s: Retained(split=x, until=until) for s, x in kept.items()}
        self.state = replace(
            self.state,
            unassigned={s: x for s, x in self.state.unassigned.items() if s not in gone},
            preferred={s: o for s, o in self.state.preferred.items() if s not in gone},
            finished=self.state.finished - gone,
            retained={
                **{s: e for s, e in self.state.retained.items() if s not in gone},
                **retained,
            },
        )
        self.context.report(
            Reason.SPLITS_REMOVED, f"{counted(len(gone), 'split')} {why}: {some(sorted(gone))}"
        )
        if retained:
            self._set_retention_alarm()

    def _report_gone(self, deleted: Collection[SplitId], *, exists: bool) -> None:
        for text in unread(deleted, self.state, self.context, self.source, exists=exists):
            self.context.report(Reason.RECORDS_GONE, text, warning=True)

    def _retained_until(self) -> float:
        """Deadline of positions that are retained from now on."""
        return self.context.now() + self.source.retention

    def _set_retention_alarm(self) -> None:
        deadlines = [
            *self.state.removed.values(),
            *(entry.until for entry in self.state.retained.values()),
        ]
        if not deadlines:
            return
        delay = max(0.0, min(deadlines) - self.context.now())
        self.context.call_async(Alarm(), self.handle_alarm, initial_delay=delay)
