"""What an enumerator that discovers its splits asks, gets, and remembers."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Self, TypeVar

from balanced_source.api import (
    STOP,
    AsyncCall,
    BoundedSplit,
    RebalanceCause,
    SourceSplit,
    SplitId,
)
from balanced_source.assigners import AssignerIdentity, DriftWatch
from balanced_source.errors import DiscoveryError, RefusedDiscoveryError
from balanced_source.names import counted, first_of, split_name

SplitT = TypeVar("SplitT", bound=SourceSplit)


@dataclass(frozen=True, slots=True)
class Alarm(AsyncCall):
    """Nothing to do but to come back later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retained(Generic[SplitT]):
    """A split that is not subscribed any more.

    Until `until` (seconds since the epoch) a return continues there.
    """

    split: SplitT
    until: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveryState(Generic[SplitT]):
    """What must survive the process. Assigned splits are not here: the coordinator has them.

    Attributes:
        unassigned: splits that wait for an owner, at the position where reading starts or
            continues.
        finished: assigned splits that have been read to their end.
        preferred: unassigned split → the reader that had it; it gets it back if it can.
        retained: see `Retained`.
        discovered: scopes whose first discovery is complete, with all start positions resolved.
            Splits found later in such a scope are new, and start at their beginning whatever the
            start option says (FLINK-32019).
        removed: discovered scopes that the source does not have any more → until when they stay
            discovered. A return before that continues, also if no position of the scope is
            retained.
        rebalance_due: splits may move as soon as everything is known.
        assigner: the policy that the owners were computed under; None when unknown. A restored
            enumerator sees from it that the user chose another one while no one was there.
    """

    unassigned: Mapping[SplitId, SplitT] = field(default_factory=dict)
    finished: frozenset[SplitId] = frozenset()
    retained: Mapping[SplitId, Retained[SplitT]] = field(default_factory=dict)
    preferred: Mapping[SplitId, int] = field(default_factory=dict)
    discovered: frozenset[str] = frozenset()
    removed: Mapping[str, float] = field(default_factory=dict)
    rebalance_due: bool = False
    assigner: AssignerIdentity | None = None

    def of_scopes(
        self, scopes: frozenset[str], *, retained: Collection[str], now: float, until: float
    ) -> Self:
        """The source has these scopes.

        What appears on a scope that may return is new, wherever the user wanted to start. Retained
        positions do not tell all: those of a recreated topic were dropped, and its new splits may
        never have been assigned.

        Args:
            scopes: of the source.
            retained: scopes with retained positions.
            now: seconds since the epoch.
            until: when a scope that was removed just now is forgotten.
        """
        deadlines = {s: self.removed.get(s, until) for s in self.discovered - scopes}
        removed = {s: deadline for s, deadline in deadlines.items() if deadline > now}
        return replace(
            self, discovered=self.discovered & scopes.union(removed, retained), removed=removed
        )

    def with_final(self, splits: Iterable[SplitT]) -> Self:
        """Hosts have let go of splits, and only now their positions are known.

        A return continues there, and those at their end that wait for an owner are finished.
        """
        final = {split.split_id: split for split in splits}
        kept = {s: replace(e, split=final[s]) for s, e in self.retained.items() if s in final}
        waiting = {s: x for s, x in final.items() if s in self.unassigned and s not in kept}
        return replace(
            self,
            retained={**self.retained, **kept},
            unassigned={**self.unassigned, **waiting},
            finished=self.finished.union(s for s, split in waiting.items() if is_read(split)),
        )

    def with_returned(self, split_ids: Collection[SplitId]) -> Self:
        """Splits whose positions were retained continue there.

        Those at their end are finished: the query may have ended with them, and reports no more.
        """
        returned = {s: self.retained[s].split for s in split_ids}
        return replace(
            self,
            retained={s: entry for s, entry in self.retained.items() if s not in returned},
            unassigned={**self.unassigned, **returned},
            finished=self.finished.union(s for s, split in returned.items() if is_read(split)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TransientState:
    """What a restart may forget.

    Attributes:
        answered: scopes that were asked in this process and answered, or failed.
        look_ups: look-ups of start positions under way. An answer to any other one is ignored.
        in_flight: the splits of these look-ups.
        incomplete: scopes with a listed split that has no start position and is not looked up now:
            its look-up failed, or a reader has to let go of it first. Their first discovery is not
            complete.
        voided: scopes whose look-ups do not count any more, and that have not answered since: what
            was looked up there is found again.
        doubtful: splits that were listed while a reader held a former split of the same id.
        unconfirmed: splits known from reports alone that a listing contradicts: they wait for
            another discovery.
        missing: split → successive discoveries that did not list it.
        named: splits of which the user was told that they were deleted. Told once, unless they
            return in between.
        refusing: scopes that did not tell about all of their splits when they were asked last.
        awaited: scope → what the user names there, and what has never been there; see
            `Discovered.absent`.
        failures: scope → successive failures.
        absences: scope → successive answers that it does not exist. Other failures are no answers.
        problems: scope → what keeps it from being read.
        unstarted: scope → successive look-ups that left splits without a start position, and what
            the last one said. Listings between them succeed, so they are not among `failures`.
        rounds: scope → number of its newest discovery; answers of older ones are ignored.
        cause: of the rebalance that is due, or was last.
        drift: decides about rebalances that no one asked for; None until loads are known.
    """

    answered: frozenset[str] = frozenset()
    look_ups: tuple["Initialize", ...] = ()
    in_flight: frozenset[SplitId] = frozenset()
    incomplete: frozenset[str] = frozenset()
    voided: frozenset[str] = frozenset()
    doubtful: frozenset[SplitId] = frozenset()
    unconfirmed: frozenset[SplitId] = frozenset()
    missing: Mapping[SplitId, int] = field(default_factory=dict)
    named: frozenset[SplitId] = frozenset()
    refusing: frozenset[str] = frozenset()
    awaited: Mapping[str, frozenset[SplitId]] = field(default_factory=dict)
    failures: Mapping[str, int] = field(default_factory=dict)
    absences: Mapping[str, int] = field(default_factory=dict)
    problems: Mapping[str, Exception] = field(default_factory=dict)
    unstarted: Mapping[str, tuple[int, Exception]] = field(default_factory=dict)
    rounds: Mapping[str, int] = field(default_factory=dict)
    cause: RebalanceCause = RebalanceCause.RESCALE
    drift: DriftWatch | None = None

    def failed(self, scope: str, error: Exception, *, threshold: int) -> Self:
        """A scope did not answer; people are told from the `threshold`-th time in a row on."""
        failures = self.failures.get(scope, 0) + 1
        is_absent = isinstance(error, DiscoveryError) and error.is_hopeless
        return replace(
            self,
            failures={**self.failures, scope: failures},
            absences={**self.absences, scope: self.absences.get(scope, 0) + 1}
            if is_absent
            else _without(self.absences, scope),
            problems={**self.problems, scope: error} if failures >= threshold else self.problems,
            # A scope that fails has been asked: known splits of it continue, and hold up no other
            # scope.
            answered=self.answered | {scope},
        )

    def listed(self, scope: str, result: "Discovered") -> Self:
        """A scope answered, perhaps with something that people should know."""
        problem = result.problem
        problems = {s: p for s, p in self.problems.items() if s != scope}
        return replace(
            self,
            failures=_without(self.failures, scope),
            absences=_without(self.absences, scope),
            problems=problems if problem is None else {**problems, scope: problem},
            named=self.named - result.split_ids,
            voided=self.voided - {scope},
            refusing=self.refusing - {scope} | ({scope} if result.refused else set()),
            answered=self.answered | {scope},
        )

    def awaiting(self, scope: str, absent: Iterable[SplitId]) -> Self:
        """A scope answered that these do not exist. What was there once is not awaited again."""
        awaited = frozenset(absent)
        if (before := self.awaited.get(scope)) is not None:
            awaited &= before
        return replace(self, awaited={**self.awaited, scope: awaited})

    def asked_otherwise(self, same: frozenset[str]) -> Self:
        """The user changed the source; only in these scopes the question is the same."""
        awaited = {scope: heads for scope, heads in self.awaited.items() if scope in same}
        return replace(self, answered=same, awaited=awaited)

    def noted(self, scope: str, loss: DiscoveryError) -> Self:
        """Splits of a scope are lost; a refusal that says more stays, as of recreated ones."""
        if isinstance(self.problems.get(scope), RefusedDiscoveryError):
            return self
        return replace(self, problems={**self.problems, scope: loss})

    def looks_up(self, call: "Initialize") -> Self:
        """Start positions are asked for."""
        return replace(
            self, look_ups=(*self.look_ups, call), in_flight=self.in_flight.union(call.split_ids)
        )

    def is_looking_up(self, call: "Initialize") -> bool:
        """Whether the answer to this very call counts.

        An equal call of a scope's former life is another one.
        """
        return any(known is call for known in self.look_ups)

    def looked_up(self, call: "Initialize") -> Self:
        """A look-up has ended, in whatever way."""
        return self._with_look_ups(known for known in self.look_ups if known is not call)

    @property
    def looked_at(self) -> frozenset[str]:
        """Scopes in which start positions are looked up, or were not found when they were."""
        return frozenset(call.scope for call in self.look_ups).union(self.unstarted)

    def without_look_ups(self, scopes: Collection[str]) -> Self:
        """What is looked up in these scopes, or was not found, does not count any more."""
        if not (voided := self.looked_at.intersection(scopes)):
            return self
        kept = self._with_look_ups(call for call in self.look_ups if call.scope not in scopes)
        rest = {s: entry for s, entry in self.unstarted.items() if s not in scopes}
        return replace(kept, unstarted=rest, voided=self.voided | voided)

    def awaits(self, scope: str, leaving: Collection[SplitId]) -> Self:
        """Splits of the scope were listed that readers have to let go of first.

        None if `leaving` is empty.
        """
        others = self.incomplete - {scope}
        incomplete = others | {scope} if leaving else others
        return replace(self, incomplete=incomplete, doubtful=self.doubtful.union(leaving))

    def lacks(self, scope: str, error: Exception) -> Self:
        """Splits of the scope are listed that have no start position yet."""
        times, _ = self.unstarted.get(scope, (0, error))
        return replace(
            self,
            incomplete=self.incomplete | {scope},
            unstarted={**self.unstarted, scope: (times + 1, error)},
            answered=self.answered | {scope},
        )

    def started(self, scope: str) -> Self:
        """Each listed split of the scope has a start position, or waits for its readers."""
        rest = {s: entry for s, entry in self.unstarted.items() if s != scope}
        return self if rest == self.unstarted else replace(self, unstarted=rest)

    def found_problems(self, threshold: int) -> dict[str, Exception]:
        """Return scope → what keeps it from being read, as far as people are told.

        Args:
            threshold: successive failures from which on they are.
        """
        lasting = {s: error for s, (times, error) in self.unstarted.items() if times >= threshold}
        return {**lasting, **self.problems}

    def confirmed(self, scope: str, scope_of: Callable[[SplitId], str]) -> Self:
        """Another discovery has answered for splits that waited for it."""
        return replace(
            self, unconfirmed=frozenset(s for s in self.unconfirmed if scope_of(s) != scope)
        )

    def doubts(self, split_id: SplitId) -> bool:
        """Whether a split seems to be gone, or may be another one by now."""
        return split_id in self.missing or split_id in self.unconfirmed

    def is_sure(self, scopes: Collection[str]) -> bool:
        """Whether all scopes have answered, and nothing waits for another answer."""
        return self.answered.issuperset(scopes) and not self.unconfirmed

    @property
    def is_asking(self) -> bool:
        """Whether something is looked up or tried again, or is not known to be gone."""
        return bool(
            self.in_flight or self.voided or self.missing or self.failures or self.unstarted
        )

    @property
    def is_unsettled(self) -> bool:
        """Whether something is looked up, or is not known to exist or to be gone."""
        return self.is_asking or bool(self.refusing or any(self.awaited.values()))

    def is_settled(self, scope: str) -> bool:
        """Whether all splits of the scope that were listed have a start position."""
        return scope not in self.incomplete and all(call.scope != scope for call in self.look_ups)

    def within(self, scopes: frozenset[str], scope_of: Callable[[SplitId], str]) -> Self:
        """Without what is known about other scopes."""
        kept = self._with_look_ups(call for call in self.look_ups if call.scope in scopes)
        return replace(
            kept,
            incomplete=self.incomplete & scopes,
            voided=self.voided & scopes,
            doubtful=frozenset(s for s in self.doubtful if scope_of(s) in scopes),
            unconfirmed=frozenset(s for s in self.unconfirmed if scope_of(s) in scopes),
            missing={s: n for s, n in self.missing.items() if scope_of(s) in scopes},
            answered=self.answered & scopes,
            refusing=self.refusing & scopes,
            awaited={s: heads for s, heads in self.awaited.items() if s in scopes},
            failures={s: n for s, n in self.failures.items() if s in scopes},
            absences={s: n for s, n in self.absences.items() if s in scopes},
            problems={s: p for s, p in self.problems.items() if s in scopes},
            unstarted={s: entry for s, entry in self.unstarted.items() if s in scopes},
        )

    def _with_look_ups(self, look_ups: "Iterable[Initialize]") -> Self:
        rest = tuple(look_ups)
        if rest == self.look_ups:
            return self
        return replace(
            self, look_ups=rest, in_flight=frozenset(s for call in rest for s in call.split_ids)
        )


def _without(counts: Mapping[str, int], scope: str) -> Mapping[str, int]:
    return {s: n for s, n in counts.items() if s != scope}


class Discover(AsyncCall):
    """Base of a connector's discovery calls; the result is a `Discovered`."""

    __slots__ = ()
    scope: str
    round: int


class Initialize(AsyncCall):
    """Base of a connector's look-ups of start positions; the result is a sequence of splits.

    A split of the question that is missing in the answer vanished meanwhile; it is found again if
    it comes back.
    """

    __slots__ = ()
    scope: str
    split_ids: tuple[SplitId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovered:
    """Answer to a `Discover`.

    Attributes:
        split_ids: all splits of the scope that are subscribed and exist.
        identities: what tells listed splits from former ones of the same ids, see
            `balanced_source.api.IDENTITY`.
        problem: what the user should know although the discovery succeeded, e.g. a topic that does
            not exist.
        refused: beginnings of the ids of splits about which the scope does not tell anything. Those
            that are known stay as they are.
        absent: beginnings of the ids of splits that the user names and that do not exist. A source
            that ends waits for them, unless it has had any of them.
    """

    split_ids: frozenset[SplitId]
    identities: Mapping[SplitId, str] = field(default_factory=dict)
    problem: DiscoveryError | None = None
    refused: frozenset[SplitId] = frozenset()
    absent: frozenset[SplitId] = frozenset()

    def without_refused(self, split_ids: set[SplitId]) -> set[SplitId]:
        """Return those of these splits of which the scope tells whether they exist."""
        return {s for s in split_ids if not any(begins_with(s, head) for head in self.refused)}


def begins_with(split_id: SplitId, head: SplitId) -> bool:
    """Return whether the id of a split begins with these members."""
    return split_id[: len(head)] == head


def is_read(split: Any) -> bool:
    """Returns whether a split has been read to its end: also without an owner it is finished."""
    return isinstance(split, BoundedSplit) and split.is_finished


def some(split_ids: Sequence[SplitId], limit: int = 3) -> str:
    """Returns the first `limit` ids for people, and how many more there are."""
    return first_of(split_ids, limit, name=split_name)


def rest_of(split: SourceSplit) -> tuple[int, int] | None:
    """Returns from where to where a split with a stop is unread; None if it has no such rest."""
    stop, position = split.attributes().get(STOP), split.position or 0
    # Positions come from connectors: what cannot be compared is not guessed at.
    if not (isinstance(stop, int) and isinstance(position, int)) or position >= stop:
        return None
    return position, stop


def some_rests(splits: Iterable[SourceSplit]) -> str:
    """Returns how many splits these are, and the unread rests of the first of them, for people."""
    rests = {s.split_id: rest for s in splits if (rest := rest_of(s)) is not None}
    shown = first_of(
        sorted(rests), 3, name=lambda s: f"{split_name(s)} ({rests[s][0]} to {rests[s][1]})"
    )
    return f"{counted(len(rests), 'split')}, {shown}"
