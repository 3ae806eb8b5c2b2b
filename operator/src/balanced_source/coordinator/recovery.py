"""Registration of reader hosts, and the gate that a recovery must pass (FLIP-537).

A host that registers again has read its Spark checkpoint and reports what it holds. What happens
then depends on whether anybody else is running:

* *full recovery*: no host is active. Nothing is assigned until all hosts that may hold something
  have registered; then splits may be dealt again over all readers. At a first start no one can hold
  anything, so no one is waited for.
* *partial recovery*: other hosts continue. The one that came back gets exactly what it owns now,
  whatever its report says about ownership (FLINK-40710: an old report beside moved splits gave two
  owners); the others see nothing.

In all, positions come from the reports; splits that the host owns but does not report come back to
the enumerator.
"""

from collections.abc import Collection, Container, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Generic

from balanced_source.api import Position, ReaderInfo, Source, SplitId, is_other
from balanced_source.coordinator.revocations import let_go, with_reported_positions
from balanced_source.coordinator.state import (
    CoordinatorState,
    HostRole,
    HostState,
    SplitT,
    StateT,
    newest,
    without_former,
)
from balanced_source.documents.report import HostReport
from balanced_source.errors import ContractViolationError
from balanced_source.lifecycles import HOST, HostEvent, HostPhase
from balanced_source.names import split_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery(Generic[SplitT]):
    """What a recovery changes; the coordinator applies it.

    Attributes:
        state: with the hosts active, and without the splits that come back.
        is_full: see the module.
        readers: the hosts' readers with the splits that they reported.
        back: subtask → splits that it owned and cannot know of.
        released: revoked splits that the hosts have let go of, at their final positions.
        guessed: those that were given without knowing that the hosts hold anything, that no one
            ever had, and that have no owner now; None if there is nothing that was not known.
        is_older: whether the Spark checkpoint of the only host is an older copy.
    """

    state: CoordinatorState[SplitT]
    is_full: bool
    readers: Mapping[int, ReaderInfo[SplitT]]
    back: Mapping[int, list[SplitT]]
    released: list[SplitT]
    guessed: frozenset[SplitId] | None
    is_older: bool


def is_at_gate(state: CoordinatorState[SplitT]) -> bool:
    """Whether all hosts that have registered are behind the gate, so no one reads.

    Nothing is dealt then, also not in the turn that opens the gate: a host that has not come would
    be the only one to get something.
    """
    phases = {host.phase for host in state.hosts.values()}
    # Beside an active host a recovery is partial: it gives the host what it owns, and waits for
    # no one.
    return HostPhase.RECOVERING in phases and HostPhase.ACTIVE not in phases


def waiting_for(state: CoordinatorState[SplitT]) -> tuple[str, ...]:
    """Return the hosts that keep the gate closed for registered hosts; empty if no host waits."""
    if not is_at_gate(state):
        return ()
    phases = {name: host.phase for name, host in state.hosts.items()}
    # No one can hold anything at a first start, so a host that cannot start delays no other. After
    # a loss, a host that is not there yet may hold splits.
    first = next(iter(state.hosts))
    return tuple(
        name
        for name in state.hosts
        if phases[name] is not HostPhase.RECOVERING
        and _may_be_missed(state.hosts[name])
        # A source that was deleted and is applied again with more hosts looks like a new one. Its
        # first host knows better. A new host that came before it would read everything once more.
        # If the first one cannot start, the others wait until its deadline (`HostOverdue`).
        and (phases[name] is not HostPhase.EXPECTED or not state.is_first_life or name == first)
    )


def _may_be_missed(host: HostState) -> bool:
    """Whether a gate waits for a host in this role.

    One that joins gets its readers when it comes. From one that leaves everything is revoked
    already, unless it has never spoken in this lineage: then no one knows yet what it holds.
    """
    return host.role is HostRole.MEMBER or (host.is_on_its_way_out and not host.known_from)


def is_blank(report: HostReport) -> bool:
    """Whether a host holds nothing at all."""
    return not (report.epoch or report.positions or report.retained)


def recover(
    state: CoordinatorState[SplitT], source: Source[SplitT, StateT]
) -> Recovery[SplitT] | None:
    """Open the gate for the registered hosts; None if no host waits, or the gate must stay closed.

    Raises:
        ContractViolationError: two hosts report the same split. Names both.
    """
    reports = {
        # The first word of a host counts, also about what a split is: discovery finds out whether
        # it still exists.
        name: without_former(report, state.splits) if host.known_from else report
        for name, host in state.hosts.items()
        if (report := host.report_at_gate) is not None
    }
    # Otherwise a late host would report splits that others read already.
    if not reports or waiting_for(state):
        return None
    reports = _with_one_holder(reports)
    # The state knows no host, and one holds something: what was decided before is a guess.
    has_history = not state.has_reports and not all(map(is_blank, reports.values()))
    known = _reported_ids(reports)
    # An older copy of the state may remember revocations that were done long ago. The first word
    # of a host in a lineage ends them: what it holds then counts.
    strangers = {n: r for n, r in reports.items() if not state.hosts[n].known_from}
    # Splits that still wait for a first adoption. Read before hosts let go, because that makes a
    # split new for its next owner, although its former host has adopted it.
    guesses = state.tracker.epochs().keys()
    state, released = let_go(state, strangers, is_done=lambda _: True)
    state = with_reported_positions(state, reports)
    # A host that joins has no readers, so nobody's splits depend on it.
    is_full = reports.keys() >= {
        n for n, host in state.hosts.items() if host.role is not HostRole.JOINING
    }
    if is_full:
        state = _with_first_words(state, reports)
    state = _apply_positions(state, source, reports, known, guesses)
    back = _uncovered(state, reports)
    gone = {split.split_id for splits in back.values() for split in splits}
    # One that was taken from its owner again is as much a guess as one that comes back now.
    taken = guesses - state.owners.keys() - state.revoking.keys()
    guessed = frozenset(gone.intersection(guesses) | taken) if has_history else None
    is_older = _goes_back(state, reports)
    state = _activate(_without(state, gone | taken), reports)
    # Until someone decides about a split that has no owner, the hosts keep its position. Hosts
    # that continue may retain what comes back from this one.
    homeless = {s for s in known if s not in state.owners} | (set() if is_full else gone)
    state = replace(state, retained=state.retained | homeless)
    # An older copy also has the word about what it only retains.
    decided = () if is_older else chain.from_iterable(back.values())
    readers = _readers(state, source, reports, {s.split_id: s for s in decided})
    return Recovery(
        state=state,
        is_full=is_full,
        readers=readers,
        back=back,
        released=released,
        guessed=guessed,
        is_older=is_older,
    )


def _goes_back(state: CoordinatorState[SplitT], reports: Mapping[str, HostReport]) -> bool:
    """Whether the Spark checkpoint of the only host is an older copy: a report had later epochs.

    Where there are other hosts, or were when it was copied, these have read what it lacks. An empty
    checkpoint is not older but lost: the former report is all that is left then.
    """
    first = next(iter(reports.values()))
    has_more = not (is_blank(first) or first.hosts)
    return len(state.hosts) == 1 and first.former is not None and has_more


def _with_one_holder(reports: Mapping[str, HostReport]) -> dict[str, HostReport]:
    """Returns the reports with each split held by the host that adopted the latest epoch.

    Earlier holders retain it.

    A host that registers again lets go of a split by that alone. Its Spark checkpoint names the
    split until the host adopts another epoch, while the split's next host already reads it.

    Raises:
        ContractViolationError: two hosts hold a split in the same epoch, which gave it to one of
            them.
    """
    holder: dict[SplitId, str] = {}
    former: dict[str, set[SplitId]] = {}
    # By epoch: each epoch gives a split to one host, and epochs grow over all lineages.
    for name in sorted(reports, key=lambda name: reports[name].epoch):
        for split_id in reports[name].positions:
            before = holder.get(split_id)
            holder[split_id] = name
            if before is None:
                continue
            # Reading on with either would deliver the records of the other twice.
            if reports[before].epoch == reports[name].epoch:
                raise ContractViolationError(
                    f"split {split_name(split_id)} is reported by host {before} and by host"
                    f" {name}: one of their Spark checkpoints was restored from an older copy,"
                    " or is used by two applications"
                )
            # The host with the earlier epoch let go when it registered; its checkpoint cannot know
            # that.
            former.setdefault(before, set()).add(split_id)
    return {name: _letting_go(report, former.get(name, ())) for name, report in reports.items()}


def _letting_go(report: HostReport, gone: Collection[SplitId]) -> HostReport:
    if not gone:
        return report
    return replace(
        report,
        owners={s: o for s, o in report.owners.items() if s not in gone},
        positions={s: p for s, p in report.positions.items() if s not in gone},
        # The position is kept as a retained one, which can only move the split forward.
        retained={**report.retained, **{s: report.positions[s] for s in gone}},
    )


def _reported_ids(reports: Mapping[str, HostReport]) -> frozenset[SplitId]:
    """All splits that hosts hold or retain."""
    return frozenset(
        s for report in reports.values() for s in (*report.retained, *report.positions)
    )


def _furthest(reports: Mapping[str, HostReport], split: SplitT, *, is_guess: bool) -> Position:
    """The furthest that anybody has read this very split; a former one of its id does not count.

    The start position of a split that no one ever had is a guess, and any report is better.
    """
    split_id = split.split_id
    matching = [
        r
        for r in reports.values()
        # A recreated split has the id of the former one, whose positions mean other records.
        if not is_other(r.attributes.get(split_id, {}), split.attributes())
    ]
    position = newest(
        *(p for r in matching for p in (r.retained.get(split_id), r.positions.get(split_id)))
    )
    # A guess may be beyond the reports (Latest was looked up later), and would skip records.
    if position is None or not is_guess:
        position = newest(position, split.position)
    return position


def _with_first_words(
    state: CoordinatorState[SplitT], reports: Mapping[str, HostReport]
) -> CoordinatorState[SplitT]:
    """Returns the state with splits at their readers, where that was unknown when they were given.

    Then which reader got them is a guess (the state was lost, or is an older copy), and splits
    would move without need.
    """
    guessed = {s for s, o in state.owners.items() if not state.hosts[state.host_of(o)].known_from}
    held: dict[SplitId, int] = {}
    for name, report in reports.items():
        # Only the first word of a host counts. Later its report may be older than what was decided:
        # an old report beside moved splits gave two owners (FLINK-40710).
        subtasks = state.subtasks_of(name) if not state.hosts[name].known_from else ()
        held |= {s: o for s, o in report.owners.items() if o in subtasks and s in guessed}
    return replace(state, owners={**state.owners, **held}) if held else state


def _apply_positions(
    state: CoordinatorState[SplitT],
    source: Source[SplitT, StateT],
    reports: Mapping[str, HostReport],
    known: Iterable[SplitId],
    guesses: Container[SplitId],
) -> CoordinatorState[SplitT]:
    """Positions of splits of the recovering hosts.

    Splits of hosts that continue are not touched at all.

    What was decided knowing the host is compared with its report epoch by epoch. What was decided
    before the host had ever registered (the state was lost) is a guess: any report is better, also
    about where the split ends.
    """
    moved: dict[SplitId, SplitT] = {}
    for split_id in known:
        owner = state.owners.get(split_id)
        name = state.host_of(owner) if owner is not None else ""
        # No one has it, or a host that continues, whose own reports tell where it is.
        if name not in reports:
            continue
        split, report = state.splits[split_id], reports[name]
        reported = report.attributes.get(split_id)
        # This was decided knowing the host, so the epochs tell whether report or assignment is
        # newer.
        if state.hosts[name].known_from:
            moved[split_id] = state.split(split_id)
        # The holder has the word, also backwards: its Spark checkpoint is the truth.
        elif split_id in report.positions:
            position, attributes = report.positions[split_id], reported or split.attributes()
            moved[split_id] = source.create_split(split_id, position, attributes)
        else:
            attributes = split.attributes()
            # The stop that the host knows counts too: a new look-up may have found another end.
            if reported is not None and not is_other(reported, attributes):
                attributes = reported
            position = _furthest(reports, split, is_guess=split_id in guesses)
            moved[split_id] = source.create_split(split_id, position, attributes)
    return replace(state, splits={**state.splits, **moved})


def _uncovered(
    state: CoordinatorState[SplitT], reports: Mapping[str, HostReport]
) -> dict[int, list[SplitT]]:
    """Splits that recovering hosts own but do not hold.

    Assigned after their checkpoint, or lost by them.
    """
    back: dict[int, list[SplitT]] = {}
    for split_id, owner in state.owners.items():
        report = reports.get(state.host_of(owner))
        # A host that is not recovering may still adopt the split: it is told in the assignment.
        if report is not None and split_id not in report.positions:
            back.setdefault(owner, []).append(state.splits[split_id])
    return dict(sorted(back.items()))


def _without(state: CoordinatorState[SplitT], gone: Iterable[SplitId]) -> CoordinatorState[SplitT]:
    dropped = frozenset(gone)
    if not dropped:
        return state
    return replace(
        state,
        owners={s: o for s, o in state.owners.items() if s not in dropped},
        splits={s: x for s, x in state.splits.items() if s not in dropped},
        tracker=state.tracker.forget(dropped),
    )


def _activate(
    state: CoordinatorState[SplitT], reports: Mapping[str, HostReport]
) -> CoordinatorState[SplitT]:
    hosts = {
        name: _activated(host, state.epoch + 1) if name in reports else host
        for name, host in state.hosts.items()
    }
    recovering = {subtask for name in reports for subtask in state.subtasks_of(name)}
    # What the host reports by itself needs no start in the assignment any more.
    known = [s for s, o in state.owners.items() if _is_known(state, s, state.host_of(o))]
    return replace(
        state,
        hosts=hosts,
        tracker=state.tracker.forget(known),
        # The new incarnation was told nothing; the enumerator says it again when it adds the
        # readers.
        no_more_splits=state.no_more_splits - recovering,
        # Events are bound to one incarnation. The enumerator sees the new one by `add_readers`, and
        # says again what matters.
        outbox=tuple(e for e in state.outbox if e.subtask_id not in recovering),
    )


def _is_known(state: CoordinatorState[SplitT], split_id: SplitId, name: str) -> bool:
    """Whether a recovering host continues with a split by its own word.

    If the split was assigned after the epoch of the host's checkpoint, what it holds is of former
    times: it moved away and came back, or is another one by that name. Then the host must be told
    where to start.
    """
    host, since = state.hosts[name], state.tracker.epoch_of(split_id)
    if (report := host.report_at_gate) is None:
        return False
    # 0 is an epoch that is not published yet, so no report can know of the split.
    return not host.known_from or since is None or 0 < since <= report.epoch


def _activated(host: HostState, epoch: int) -> HostState:
    phase = HOST.after(host.phase, HostEvent.PASSED)
    return replace(
        host,
        phase=phase,
        # What a predecessor said matters at the gate only.
        report=host.report and replace(host.report, former=None),
        addressed_epoch=epoch,
        known_from=host.known_from or epoch,
    )


def _readers(
    state: CoordinatorState[SplitT],
    source: Source[SplitT, StateT],
    reports: Mapping[str, HostReport],
    back: Mapping[SplitId, SplitT],
) -> dict[int, ReaderInfo[SplitT]]:
    """Readers of all recovering hosts, in order, with their reports at the positions that count."""
    readers: dict[int, ReaderInfo[SplitT]] = {}
    decided = {**state.splits, **back}
    for name, report in reports.items():
        subtasks = state.subtasks_of(name)
        read = _by_subtask(state, source, report, decided, report.positions)
        kept = _by_subtask(state, source, report, decided, report.retained)
        for subtask in subtasks:
            readers[subtask] = ReaderInfo(
                subtask_id=subtask,
                location=report.location,
                reported_splits=tuple(read.get(subtask, ())),
                retained_splits=tuple(kept.get(subtask, ())),
                is_first_report=_is_first(state, name),
                has_adopted=report.epoch > 0,
            )
    # No reader of such a host can report for it. Another one does, or its positions would be lost.
    if readers and (
        idle := {name: report for name, report in reports.items() if not state.subtasks_of(name)}
    ):
        first = readers[min(readers)]
        readers[first.subtask_id] = replace(
            first,
            retained_splits=(
                *first.retained_splits,
                *_unclaimed(state, source, idle.values(), decided),
            ),
            is_first_report=first.is_first_report or any(_is_first(state, name) for name in idle),
        )
    return dict(sorted(readers.items()))


def _is_first(state: CoordinatorState[SplitT], name: str) -> bool:
    """Whether a host that passes the gate now has never passed it before."""
    return state.hosts[name].known_from > state.epoch


def _unclaimed(
    state: CoordinatorState[SplitT],
    source: Source[SplitT, StateT],
    reports: Iterable[HostReport],
    decided: Mapping[SplitId, SplitT],
) -> list[SplitT]:
    """What hosts hold that run no reader any more, since parallelism fell.

    Others continue where they were.
    """
    return [
        _reported_split(source, report, decided, split_id, position)
        for report in reports
        for split_id, position in sorted({**report.retained, **report.positions}.items())
        # An owned split has its position from its holder.
        if split_id not in state.owners
    ]


def _reported_split(
    source: Source[SplitT, StateT],
    report: HostReport,
    decided: Mapping[SplitId, SplitT],
    split_id: SplitId,
    position: Position,
) -> SplitT:
    """A reported split at the position that counts."""
    attributes, split = report.attributes.get(split_id, {}), decided.get(split_id)
    # The decided one is of another life of this id, so its position does not belong to the report.
    if split is None or is_other(attributes, split.attributes()):
        return source.create_split(split_id, position, attributes)
    return split


def _by_subtask(
    state: CoordinatorState[SplitT],
    source: Source[SplitT, StateT],
    report: HostReport,
    decided: Mapping[SplitId, SplitT],
    positions: Mapping[SplitId, Position],
) -> dict[int, list[SplitT]]:
    subtasks = state.subtasks_of(report.host)
    found: dict[int, list[SplitT]] = {}
    for split_id, position in sorted(positions.items()):
        subtask = _reporting_subtask(state, report, split_id, subtasks)
        if subtask is not None:
            found.setdefault(subtask, []).append(
                _reported_split(source, report, decided, split_id, position)
            )
    return found


def _reporting_subtask(
    state: CoordinatorState[SplitT], report: HostReport, split_id: SplitId, subtasks: range
) -> int | None:
    """The reader that a reported split is attributed to.

    Its owner now, else the one that had it, else any.
    """
    # The enumerator gives a split back to the reader that reports it, so the owner goes first.
    for candidate in (state.owners.get(split_id), report.owners.get(split_id)):
        if candidate is not None and candidate in subtasks:
            return candidate
    return subtasks[0] if subtasks else None
