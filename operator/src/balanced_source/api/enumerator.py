"""The enumerator's side of FLIP-27, with FLIP-537's reports and the extensions of this project.

Threading: there is none. Every method is called by the coordinator, one after another, and must
return at once; whatever waits for the outside world goes through
`SplitEnumeratorContext.call_async` as a value that someone else executes. Time is what
`SplitEnumeratorContext.now` says.

Extensions of the FLIP, each needed because parallelism and the source change here without a
restart: `rebalance`, `handle_renumbered`, `handle_source_change`, `handle_revoked`,
`handle_finished` and, on the context, `current_assignments`, `revoke_splits`, `forget_splits`,
`now`.
"""

import copy
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Generic, Self

from balanced_source.api.context import Boundedness, SplitEnumeratorContext, SplitT, StateT
from balanced_source.api.events import SourceEvent
from balanced_source.api.rebalancing import RebalanceCause
from balanced_source.api.splits import Json, Position, SourceSplit, SplitId
from balanced_source.errors import ContractViolationError


class SplitEnumerator(ABC, Generic[SplitT, StateT]):
    """Discovers splits and assigns them to readers (FLIP-27 ``SplitEnumerator``)."""

    def __init__(self, context: SplitEnumeratorContext[SplitT]) -> None:
        self.context = context

    @abstractmethod
    def start(self) -> None:
        """Called once, before any other method, for a fresh and for a restored enumerator alike.

        Readers may be registered already when state was restored. On return, discovery is under
        way: what it needs was asked by `SplitEnumeratorContext.call_async`.
        """

    @abstractmethod
    def add_reader(self, subtask_id: int) -> None:
        """Called when a reader has registered and the recovery gate is open for it.

        Its `ReaderInfo` is in `registered_readers`. Splits that it reported, and that it still
        owns, are assigned to it already; the enumerator decides about the others that it reported:
        on return each of them has an owner, is remembered by the enumerator as waiting for one, or
        was given up by `SplitEnumeratorContext.forget_splits`. Called again for each incarnation of
        the reader: what it was told by events before, it does not know any more.
        """

    def add_readers(self, subtask_ids: Sequence[int]) -> None:
        """Called with all readers that register at the same time.

        By default calls `add_reader` for each.

        An enumerator that assigns splits when a reader registers must override this: take in the
        reports of all of these readers first, then assign. A later reader may hold a split that
        seems to have no owner, and only its report says where reading continues.
        """
        for subtask_id in subtask_ids:
            self.add_reader(subtask_id)

    def handle_history(self, guessed: Collection[SplitId]) -> None:
        """Called before `add_readers` when readers hold splits that the state does not know.

        The state was lost or is an older copy, or the source was created again for an existing
        Spark checkpoint. Until now, the enumerator has assigned splits as if no record had been
        read.

        Args:
            guessed: splits that had an owner until now and that no reader holds. They have come
                back by `add_splits_back`, at the start position that was chosen without this
                knowledge.
        """

    def handle_older_checkpoint(self) -> None:
        """Called before `add_readers` when the only Spark checkpoint is an older copy.

        What was delivered since then is to be delivered again, as far as the enumerator can tell
        where it began. Splits that were given to readers since the copy was made, or that it only
        retains, have come back by `add_splits_back`, where they were read last. By default they
        continue there.
        """

    @abstractmethod
    def add_splits_back(self, splits: Sequence[SplitT], subtask_id: int) -> None:
        """Called with exactly the splits that a lost reader had been given and cannot know of.

        They have no owner any more, and the reader is not registered during the call. On return,
        each split has a new owner, or the enumerator keeps it as pending, with its position. No
        other part keeps it.
        """

    def handle_split_request(self, subtask_id: int, requester_hostname: str | None) -> None:
        """Called when a reader asks for one split (pull-based sources).

        Push-based sources ignore it.

        A request that is not answered is not part of the state: after a restart of the operator,
        and in each new incarnation of the reader (`add_reader`), the method is called again for
        what the reader lacks then.

        Answer by `assign_splits`, now or later, or by `signal_no_more_splits`. Splits that come
        back by `add_splits_back` when readers became fewer belong to no one who could ask:
        `rebalance` follows, and must give them to the readers that are left, also to those that
        were told that there is no more.

        Args:
            subtask_id: who asks; registered.
            requester_hostname: where it runs, for locality; None when unknown.
        """

    def handle_split_requests(
        self, counts: Mapping[int, int], requester_hostname: str | None
    ) -> None:
        """Called with the requests of all readers of a host.

        By default calls `handle_split_request` for each split.

        Args:
            counts: reader → splits that it asks for; all of them are registered.
            requester_hostname: where they run, for locality; None when unknown.
        """
        for subtask_id, count in counts.items():
            for _ in range(count):
                self.handle_split_request(subtask_id, requester_hostname)

    def handle_source_event(self, subtask_id: int, event: SourceEvent) -> None:
        """Called once for each event of a registered reader, in order, also across restarts.

        Events of a reader that a change of parallelism took away meanwhile are dropped.
        """

    def handle_revoked(self, splits: Sequence[SplitT]) -> None:
        """Called when hosts have let go of splits that were revoked, with their final positions.

        Only now may such a split be given out again as something else (a topic that was deleted and
        recreated).
        """

    def handle_loads(self) -> None:
        """Called when `SplitEnumeratorContext.split_loads` has changed, after each report."""

    def handle_finished(self, split_ids: Sequence[SplitId]) -> None:
        """Called when a report shows that owned splits have reached their stopping position.

        They stay assigned, without work. Called once for a split; again after a restart of the
        operator, and when the split was given again, so it must change nothing for splits that it
        knows as finished.
        """

    def handle_renumbered(self, numbers: Mapping[int, int]) -> None:
        """Called when reader hosts came or went, and readers that continue have other numbers now.

        Whatever the enumerator remembers by the number of a reader must be changed. Splits of
        readers that no longer exist have come by `add_splits_back` before, under the numbers of
        that time; `rebalance` follows. An enumerator that remembers nothing of that kind needs no
        override.

        Args:
            numbers: number of each reader before → after. Readers that no longer exist are left
        out.
        """

    def rebalance(self, cause: RebalanceCause) -> None:
        """Called when splits may move.

        On return every split that the enumerator deals with has the owner it wants.

        For `RESCALE`, splits of readers that no longer exist have come by `add_splits_back` before,
        and someone must get them now. Without an override nothing moves, which is right only where
        each remaining reader asks again.
        """

    def handle_source_change(self, source: "Source[SplitT, StateT]") -> None:
        """Called when the user changed the source while it runs; `source` replaces the one before.

        Raises:
            ContractViolationError: this source cannot change while it runs (the default).
        """
        raise ContractViolationError(f"{type(self).__name__} cannot change while it runs")

    @abstractmethod
    def snapshot_state(self) -> StateT:
        """Called before anything that this enumerator decided takes effect.

        Returns an immutable value.

        Everything that must survive the process is in it; calls under way are not, `start` issues
        them again.
        """

    def problems(self) -> Mapping[str, Exception]:
        """Called after each event.

        What keeps parts of the source from being read now, by scope; for people.
        """
        return {}

    def blocked(self) -> Mapping[str, Exception]:
        """Called after each event. Those of `problems` whose scope could not be listed at all.

        The others are about a part of it, such as one missing topic.
        """
        return self.problems()

    def only_awaits(self) -> bool:
        """Called after each event. Whether a source that ends waits only for what does not exist.

        Everything else is read; `problems` says what the user names and what is missing.
        """
        return False

    @property
    def stage(self) -> str:
        """What is read now, of an enumerator that reads several things in turn.

        Where it is another one than before, nothing of it has been assigned yet.
        """
        return ""

    def undiscovered(self) -> frozenset[str]:
        """Called after each event.

        Return the scopes whose splits, or their start positions, are not known yet.
        """
        return frozenset()

    def is_settled(self) -> bool:
        """Called after each event. Whether all scopes have answered, and nothing is tried again.

        A split that some query expects to read, and that has no owner then, is not there any more.
        """
        return False

    def pending_splits(self) -> int:
        """Called after each event. How many splits are known and wait for an owner; for people."""
        return 0

    def is_finished(self) -> bool:
        """Called after each event.

        True when everything that there will ever be has been read (bounded sources).
        """
        return False

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """Called when all registered readers hold epoch `checkpoint_id` in their checkpoint."""

    def close(self) -> None:
        """Called once, last, when the process lets go of the source; not when it dies.

        Nothing can be decided any more, and it must not raise. It frees nothing by itself, because
        an enumerator owns nothing outside.
        """

    def fork(self, context: SplitEnumeratorContext[SplitT]) -> Self:
        """A copy that goes its own way, bound to another context.

        For dry runs and for exhaustive exploration.

        Override it where the state is immutable: a deep copy is correct, and slow.
        """
        return copy.deepcopy(self, {id(self.context): context})


class Source(ABC, Generic[SplitT, StateT]):
    """The factory of enumerators, and the format of splits and state (FLIP-27 ``Source``)."""

    @property
    @abstractmethod
    def boundedness(self) -> Boundedness:
        """Whether readers may ever be told that there are no more splits."""

    @abstractmethod
    def create_enumerator(
        self, context: SplitEnumeratorContext[SplitT]
    ) -> SplitEnumerator[SplitT, StateT]:
        """A fresh enumerator. Called once per life of the source; `SplitEnumerator.start` follows.

        On return nothing has been decided: the context may be kept, and is not to be used before
        `start`.
        """

    @abstractmethod
    def restore_enumerator(
        self, context: SplitEnumeratorContext[SplitT], state: StateT
    ) -> SplitEnumerator[SplitT, StateT]:
        """An enumerator that continues from a snapshot.

        Called in each process after the first; `start` follows.

        `state` is what `decode_state` made of the bytes of the last
        `SplitEnumerator.snapshot_state` that was stored.
        """

    @abstractmethod
    def create_split(
        self, split_id: SplitId, position: Position, attributes: Mapping[str, Any]
    ) -> SplitT:
        """The split that `SourceSplit.split_id`, `position` and `attributes` describe.

        Their inverse.

        Called wherever a split comes out of a document, by operator and reader alike: it must not
        look at anything but its arguments and the source's settings.
        """

    @abstractmethod
    def encode_state(self, state: StateT) -> Any:
        """The enumerator's state as JSON, in the version `state_version`."""

    @abstractmethod
    def decode_state(self, version: int, data: Any) -> StateT:
        """Read the JSON of any version up to `state_version`.

        Raises:
            IncompatibleVersionError: written by a newer version.
            CorruptDocumentError: not what that version writes.
        """

    @property
    @abstractmethod
    def state_version(self) -> int:
        """Version that `encode_state` writes."""

    @property
    def wants_loads(self) -> bool:
        """Whether the enumerator looks at the loads of splits.

        Observing them costs time and room in the state.
        """
        return False

    @property
    def has_ending_splits(self) -> bool:
        """Whether splits may come to an end: `SplitEnumerator.handle_finished` is called for them.

        The default is for sources that end, and for those whose readers ask for splits. A source
        that never ends may have splits that do, such as closed shards.
        """
        return self.boundedness is Boundedness.BOUNDED or self.look_ahead > 0

    @property
    def look_ahead(self) -> int:
        """Number of unread splits that a host asks for on behalf of each reader; 0: none.

        The default is for sources that assign their splits by themselves. With more than 0 a host
        keeps asking (`SplitEnumerator.handle_split_requests`) until each of its readers has that
        many splits that are not read yet, or was told that there are no more. It asks as soon as a
        micro-batch is planned, so the next splits come while it runs.
        """
        return 0

    @property
    def has_event_times(self) -> bool:
        """Whether splits can be aligned in event time.

        False: their records have no times, so a spec that asks for alignment is invalid. With True,
        the default, the driver looks whether the connector has `PlannerHooks.event_times`.
        """
        return True

    def counts_unread(self, split_id: SplitId) -> bool:
        """Whether the number of records that are unread in a split says how much there is to do.

        False where the source does not tell where a split ends, or where most of the work is in
        splits that no reader has yet. Then `spec.autoscaling` leaves the number of readers as it
        is. The default is for sources whose readers do not ask for splits.
        """
        del split_id
        return self.look_ahead == 0

    @property
    def kind(self) -> str:
        """Name of the connector that the source belongs to, see `Connector.kind`.

        Empty if it has none.

        A source without a connector runs only where a program hands it over by itself.
        """
        return ""

    def deals_anew(self, split_id: SplitId) -> bool:
        """Whether a split may get another reader after a full recovery.

        By default as the class is marked.

        A split that may not stays with the reader that reported it.
        """
        del split_id
        return isinstance(self, SupportsSplitReassignmentOnRecovery)

    def why_not_continued(self, split: SplitT) -> str:
        """Return why reading cannot continue with a split of a Spark checkpoint; empty if it can.

        Asked once per process by a query without an operator: nothing but its checkpoint knows the
        settings under which the split was begun. The text is a sentence that says what to do.
        """
        del split
        return ""

    def reader_settings(self) -> Mapping[str, Any]:
        """What readers must know to connect, as JSON without secrets: ``{kind: settings}``.

        The key is the kind of the source: by it a query sees that its connector fits. Empty if
        there is nothing to know. Travels with the assignment.
        """
        return {}


def split_to_json(split: SourceSplit) -> Json:
    """Return the JSON from which `Source.create_split` builds the split."""
    return [list(split.split_id), split.position, dict(split.attributes())]


class SupportsSplitReassignmentOnRecovery:
    """Marks a `Source` whose splits may be reassigned after a full recovery (FLIP-537).

    Without it every reader gets back exactly what it reported.
    """

    __slots__ = ()
