"""Compares the Spark checkpoint of a query with what its predecessor reported.

Spark's checkpoint decides where a query continues, so one that was deleted or restored from an
older copy changes what is delivered. The last report of the former driver shows both.
"""

from dataclasses import replace
from typing import Any

from balanced_source.api import Problem, Source, SplitId, is_other
from balanced_source.documents.report import HostReport
from balanced_source.documents.stream_offset import STATE_DIR, StreamOffset
from balanced_source.errors import ForeignCheckpointError, in_short
from balanced_source.names import counted, split_name
from balanced_source.reasons import Reason

KEY = ("checkpoint",)
"""Key of the problem."""


class CheckpointWatch:
    """Remembers that the checkpoint was behind the former driver's last report, until made up."""

    def __init__(self) -> None:
        self._behind: HostReport | None = None
        self._problem: Problem | None = None
        self._given_up: dict[SplitId, int] = {}

    def note_replay(self, begin: StreamOffset, end: StreamOffset) -> None:
        """Take note of a micro-batch that a former driver planned, before anything is compared.

        One that goes back to where a log was cut proves that the checkpoint knows what was read
        before: its end alone looks like an older copy.
        """
        for split_id, position in end.positions.items():
            before = begin.positions.get(split_id) or 0
            # What starts anew, as the split of a recreated topic, has no former positions.
            if before > (position or 0) and split_id not in end.starts:
                self._given_up[split_id] = before

    def compare(
        self, offset: StreamOffset, former: HostReport | None, *, instance: str
    ) -> Problem | None:
        """Return what is wrong with the checkpoint of a query that starts; None if nothing is.

        Args:
            offset: newest one in the checkpoint.
            former: last report of the former driver; None if there is none.
            instance: of this driver. Its own report means that the answer to an attempt to register
                was lost.
        """
        if former is None or former.instance != instance:
            self._problem = checkpoint_problem(self._read(offset), former)
            self._behind = _last(former) if self._problem is not None else None
        return self._problem

    def problem_after(self, offset: StreamOffset) -> Problem | None:
        """Return what is still wrong once `offset` is delivered.

        Nothing, if everything was delivered again.
        """
        behind = self._behind
        if (
            behind is not None
            and offset.epoch >= behind.epoch
            and not splits_behind(self._read(offset), behind)
        ):
            self._behind = self._problem = None
        return self._problem

    def _read(self, offset: StreamOffset) -> StreamOffset:
        """Return the offset as if positions that were given up with consent still counted."""
        if not self._given_up:
            return offset
        held = {
            s: max(p, offset.positions[s] or 0)
            for s, p in self._given_up.items()
            if s in offset.positions
        }
        return replace(offset, positions={**offset.positions, **held})


def checkpoint_problem(offset: StreamOffset, former: HostReport | None) -> Problem | None:
    """Return what is wrong with the checkpoint that holds `offset`.

    None if it is at least as new as the report.
    """
    former = _last(former)
    if former is None or not (former.positions or former.epoch):
        return None
    behind = splits_behind(offset, former)
    if not (offset.epoch or offset.positions or offset.retained):
        reason, message = Reason.CHECKPOINT_LOST, _lost(former) if former.positions else ""
    elif behind:
        reason, message = Reason.CHECKPOINT_OLDER, _older(behind, offset, former)
    else:
        reason, message = Reason.CHECKPOINT_OLDER, _of_older_epoch(offset, former)
    return Problem(reason=reason, message=message) if message else None


def _last(former: HostReport | None) -> HostReport | None:
    """Return the last report of a driver that has adopted an epoch, as far as it is known."""
    return former if former is None else former.former or former


def check_owner(offset: StreamOffset, *, owner: str, accepted: str = "") -> None:
    """Refuse an offset of another source's checkpoint.

    Args:
        offset: as Spark passes it.
        owner: see `Options.checkpoint_owner`.
        accepted: another source whose checkpoint the user allows.

    Raises:
        ForeignCheckpointError: the offset names another source, or needs a state that the query
            does not have.
    """
    if offset.source == STATE_DIR:
        if not owner:
            raise ForeignCheckpointError(
                "this query was started with stateDir before, and only the state there knows what"
                " was read: set stateDir to the same folder again. To read everything once more,"
                " set another checkpointLocation"
            )
        return
    if not offset.source or owner in ("", STATE_DIR) or offset.source in (owner, accepted):
        return
    raise ForeignCheckpointError(
        f"the Spark checkpoint of this query belongs to source {offset.source}, but the query reads"
        f" {owner}: its positions mean nothing here. Give the query a checkpointLocation of its"
        " own. To continue from that checkpoint on purpose, as after a rename, set option"
        f" acceptCheckpointOf to {offset.source}"
    )


def check_splits(offset: StreamOffset, source: Source[Any, Any] | None) -> None:
    """Refuse an offset whose splits were begun with other settings.

    Args:
        offset: the first one that Spark passes to a process.
        source: that the driver assigns by itself; None: someone else assigns, and sees to it.

    Raises:
        ForeignCheckpointError: reading cannot continue with a split.
    """
    if source is None:
        return
    for split_id in sorted(offset.positions):
        if why := _why_not(offset, split_id, source):
            raise ForeignCheckpointError(why)


def _why_not(offset: StreamOffset, split_id: SplitId, source: Source[Any, Any]) -> str:
    position, attributes = offset.positions[split_id], offset.attributes.get(split_id, {})
    try:
        split = source.create_split(split_id, position, attributes)
    except Exception as error:  # noqa: BLE001 - of a connector, about a split that is not its own
        return (
            f"the Spark checkpoint of this query holds split {split_name(split_id)}, which is none"
            f" of connector {source.kind!r} ({in_short(error)}). Set the option connector as"
            " before, or give the query a checkpointLocation of its own"
        )
    return source.why_not_continued(split)


def splits_behind(offset: StreamOffset, former: HostReport) -> dict[SplitId, int]:
    """Return the splits that `offset` would read again, with their delivered positions."""
    return {
        split_id: position
        for split_id, position in sorted(former.positions.items())
        if position is not None
        and split_id in offset.positions
        and (offset.positions[split_id] or 0) < position
        and not is_other(offset.attributes.get(split_id, {}), former.attributes.get(split_id, {}))
    }


def _lost(former: HostReport) -> str:
    return (
        f"the Spark checkpoint is empty, although incarnation {former.incarnation} of this query"
        f" read {counted(len(former.positions), 'split')}: it was deleted, or"
        " checkpointLocation was changed. Reading continues where that query last reported;"
        " micro-batches that it committed after that report are delivered again. Their numbers"
        " begin at 0 again, and a sink that recognises micro-batches by their number may skip new"
        " ones. If this was not intended, stop the query (under the operator: suspend the source),"
        " restore the checkpoint, and start it again"
    )


def _of_older_epoch(offset: StreamOffset, former: HostReport) -> str:
    """Return what a checkpoint without splits of the report lacks; empty if it is not older."""
    # An epoch is reported when an offset with it is logged, so the newest checkpoint knows it.
    if offset.epoch >= former.epoch:
        return ""
    return (
        f"the Spark checkpoint is older than what incarnation {former.incarnation} of this query"
        f" delivered: its epoch is {offset.epoch}, and that query had epoch {former.epoch}."
        f" Reading continues with the {counted(len(offset.positions), 'split')} that the checkpoint"
        " holds. If one application reads Kafka or Kinesis, partitions or shards that were found"
        " since then are read from their beginning; of other sources they continue where that query"
        " last reported, and what was read to its end is not delivered again. Stop the query (under"
        " the operator: suspend the source), restore the newest checkpoint, and start it again"
    )


def _older(behind: dict[SplitId, int], offset: StreamOffset, former: HostReport) -> str:
    split_id, position = next(iter(behind.items()))
    records = sum(position - (offset.positions[s] or 0) for s, position in behind.items())
    return (
        f"the Spark checkpoint is older than what incarnation {former.incarnation} of this query"
        f" delivered: {counted(len(behind), 'split')} will go back by"
        f" {counted(records, 'offset')}, e.g. {split_name(split_id)} from {position} to"
        f" {offset.positions[split_id] or 0}. These records are delivered again, and a sink that"
        " recognises micro-batches by their number may skip new ones. Restore the sink to the same"
        " point, or stop the query (under the operator: suspend the source), restore the newest"
        " checkpoint, and start it again"
    )
