"""What planning asks of a hybrid source.

It asks the hooks of the parts, each about its own splits.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, TypeVar

from balanced_source.api import Problem, ProblemKey, SourceEvent, SplitId
from balanced_source.connectors.hybrid import KIND, HybridReaderSettings
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.errors import DiscoveryError
from balanced_source.host import ReaderPlan, SplitRange
from balanced_source.host.alignment import RecordTime
from balanced_source.host.ends import Look, Mark, SplitEnd
from balanced_source_spark.contract.checked_hooks import hooks_of
from balanced_source_spark.contract.half import half_of
from balanced_source_spark.contract.hooks import Figure, PlannerContext, PlannerHooks
from balanced_source_spark.hybrid.half import Reads, part_query
from balanced_source_spark.hybrid.options import PartRead

V = TypeVar("V")


class HybridHooks(PlannerHooks):
    """See the module.

    Args:
        context: of the query.
    """

    def __init__(self, context: PlannerContext[Reads]) -> None:
        self._context = context
        self._parts = {
            part.name: hooks_of(half_of(part.kind), _context(context, part), connector=part.kind)
            for part in context.query.read
        }
        self._held: frozenset[str] = frozenset(self._parts)

    def scope_of(self, split_id: SplitId) -> str:
        """Return part and scope: each cluster of a part answers for itself."""
        name = str(split_id[0])
        return f"{name}/{self._parts[name].scope_of(split_id[1:])}"

    def ends(
        self, scope: str, split_ids: Collection[SplitId], marks: Mapping[SplitId, Mark]
    ) -> Mapping[SplitId, SplitEnd]:
        found: dict[SplitId, SplitEnd] = {}
        for name, own in _by_part(split_ids).items():
            inner = self._parts[name].scope_of(own[0])
            try:
                answers = self._parts[name].ends(inner, own, _own(marks, name))
            except DiscoveryError as error:
                # The caller knows splits by their outer ids, also in the answers that an error
                # carries.
                error.answers = _outer(error.answers, name)
                raise
            found |= _outer(answers, name)
        return found

    @property
    def tells_event_times(self) -> bool:
        """Splits of all parts wait for each other."""
        return all(hooks.tells_event_times for hooks in self._parts.values())

    def event_times(
        self, scope: str, millis: Mapping[SplitId, int]
    ) -> Mapping[SplitId, RecordTime | None]:
        found: dict[SplitId, RecordTime | None] = {}
        for name, own in _by_part(millis).items():
            hooks = self._parts[name]
            found |= _outer(hooks.event_times(hooks.scope_of(own[0]), _own(millis, name)), name)
        return found

    def admit(
        self, held: Mapping[SplitId, int], reachable: Mapping[SplitId, int], *, may_wait: bool
    ) -> Mapping[SplitId, int]:
        found: dict[SplitId, int] = {}
        for name in _by_part(held):
            own = self._parts[name].admit(
                _own(held, name), _own(reachable, name), may_wait=may_wait
            )
            found |= _outer(own, name)
        return found

    def asked_for(self, split_ids: Collection[SplitId]) -> Collection[SplitId]:
        found: list[SplitId] = []
        for name, own in _by_part(split_ids).items():
            asked = self._parts[name].asked_for(own) or ()
            found += ((name, *split_id) for split_id in asked)
        return found

    def are_all_unread(self, split_ids: Collection[SplitId]) -> bool:
        *_, last = self._parts
        found = _by_part(split_ids)
        return found.keys() == {last} and self._parts[last].are_all_unread(found[last])

    def may_cut(self, split_id: SplitId) -> bool:
        return self._parts[str(split_id[0])].may_cut(split_id[1:])

    def may_skip(self) -> bool:
        # Splits of all parts are in one micro-batch: the strictest policy counts.
        return all(self._parts[name].may_skip() for name in self._held)

    def note_look(self, base: StreamOffset, seen: Look) -> None:
        names = frozenset(_by_part(base.positions))
        for name in sorted(names | self._held):  # a part without splits takes back what it has told
            self._parts[name].note_look(_offset(base, name), _look(seen, name))
        self._held = names or self._held

    def note_planned(self, plans: Iterable[ReaderPlan], settings: Mapping[str, Any]) -> None:
        listed = list(plans)
        for name, hooks in self._parts.items():
            own = [replace(plan, ranges=_of_part(plan.ranges, name)) for plan in listed]
            if any(plan.ranges for plan in own):
                hooks.note_planned(own, _settings(settings, name))

    def note_skipped(self, ranges: Collection[SplitRange]) -> None:
        for name, hooks in self._parts.items():
            if own := _of_part(ranges, name):
                hooks.note_skipped(own)

    def handle_source_event(self, subtask_id: int, event: SourceEvent) -> None:
        known: Mapping[str, Any] = event.payload if isinstance(event.payload, Mapping) else {}
        hooks = self._parts.get(str(known.get("part")))
        if hooks is None:
            super().handle_source_event(subtask_id, event)
        else:
            hooks.handle_source_event(
                subtask_id, SourceEvent(name=event.name, payload=known.get("payload"))
            )

    def note_delivered(self, delivered: StreamOffset) -> None:
        for name in _by_part(delivered.positions):
            self._parts[name].note_delivered(_offset(delivered, name))

    def with_former(
        self, settings: Mapping[str, Any], former: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        if KIND not in settings:
            return settings
        known, before = HybridReaderSettings.of(settings), HybridReaderSettings.of(former)
        return {**settings, KIND: known.with_former(before, self._joined).to_json()}

    def _joined(
        self, name: str, settings: Mapping[str, Any], former: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        hooks = self._parts.get(name)
        return settings if hooks is None else hooks.with_former(settings, former)

    def numbers(self) -> Mapping[str, int]:
        found: dict[str, int] = {}
        for hooks in self._parts.values():
            for name, number in hooks.numbers().items():
                found[name] = found.get(name, 0) + number
        return found

    def figures(self) -> Iterator[Figure]:
        for hooks in self._parts.values():
            yield from hooks.figures()

    def close(self) -> None:
        with ExitStack() as parts:
            for hooks in self._parts.values():
                parts.callback(hooks.close)


def _context(context: PlannerContext[Reads], part: PartRead) -> PlannerContext[Any]:
    """Return what the hooks of a part may use."""
    name = part.name

    def set_problem(key: ProblemKey, problem: Problem | None) -> None:
        path = (key,) if isinstance(key, str) else key
        context.set_problem((*path, name), problem)

    def send(subtask_id: int, event: SourceEvent) -> bool:
        payload = {"part": name, "payload": event.payload}
        return context.send_source_event(subtask_id, SourceEvent(name=event.name, payload=payload))

    return PlannerContext(
        query=part_query(context.query, part),
        settings=lambda: _settings(context.settings(), name),
        known_settings=lambda: _settings(context.known_settings(), name),
        set_problem=set_problem,
        check_problems=context.check_problems,
        send_source_event=send,
    )


def _settings(settings: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the settings of a part; nothing while there is no assignment."""
    return HybridReaderSettings.of(settings).part(name)


def _by_part(split_ids: Iterable[SplitId]) -> dict[str, list[SplitId]]:
    """Return the ids of each part, as the part knows them."""
    found: dict[str, list[SplitId]] = {}
    for split_id in split_ids:
        found.setdefault(str(split_id[0]), []).append(split_id[1:])
    return found


def _own(values: Mapping[SplitId, V], name: str) -> dict[SplitId, V]:
    return {split_id[1:]: value for split_id, value in values.items() if split_id[0] == name}


def _outer(values: Mapping[SplitId, V], name: str) -> dict[SplitId, V]:
    return {(name, *split_id): value for split_id, value in values.items()}


def _of_part(ranges: Iterable[SplitRange], name: str) -> tuple[SplitRange, ...]:
    return tuple(
        replace(piece, split_id=piece.split_id[1:]) for piece in ranges if piece.split_id[0] == name
    )


def _offset(offset: StreamOffset, name: str) -> StreamOffset:
    """Return an offset with the splits of one part."""
    return replace(
        offset,
        owners=_own(offset.owners, name),
        positions=_own(offset.positions, name),
        starts=_own(offset.starts, name),
        retained=_own(offset.retained, name),
        attributes=_own(offset.attributes, name),
        terms=_own(offset.terms, name),
        term_ends=_own(offset.term_ends, name),
    )


def _look(seen: Look, name: str) -> Look:
    return Look(
        ends=_own(seen.ends, name),
        terms=_own(seen.terms, name),
        term_ends=_own(seen.term_ends, name),
        recreated=frozenset(split_id[1:] for split_id in seen.recreated if split_id[0] == name),
        cuts=_own(seen.cuts, name),
        deleted=_own(seen.deleted, name),
        short=_own(seen.short, name),
        unchecked=_own(seen.unchecked, name),
        firsts=_own(seen.firsts, name),
    )
