"""Every interleaving of attempts, kills, lost answers, deletions and planners.

On the product's code.

The world has one reader and one split. A fetch may bring an element or none. Spark runs two
attempts at the task of a micro-batch. Each may stop forever, or continue as a zombie when its
micro-batch is over; so a kill needs no step of its own. A micro-batch may be committed without its
task having run. The planner may close a micro-batch several times: it may die before what it found
is logged. It may then delete the records of all micro-batches before, earlier than any option lets
it. A zombie whose record is gone may seal another range, and Spark takes no row of it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from balanced_source.documents.journal import JournalRecord, RecordKey
from balanced_source.host.journal import (
    Attempt,
    Emit,
    Fetch,
    LookUp,
    Seal,
    SealResult,
    close,
    folded,
)

S = ("server", "log")
JOURNAL = "j"
BATCHES = 2
ATTEMPTS = 2
"""That are started for one micro-batch."""


def record(number: int, start: int, end: int) -> JournalRecord:
    key = RecordKey(JOURNAL, number, 0)
    return (
        JournalRecord(key=key, starts={S: start}, ends={S: end})
        if end > start
        else JournalRecord(key=key)
    )


@dataclass(frozen=True)
class Running:
    """An attempt; `start` is what its partition says."""

    attempt: Attempt
    start: int


@dataclass(frozen=True)
class World:
    """What there is, at one moment.

    Attributes:
        number: micro-batch that is logged, from 1 on.
        start: of it.
        is_over: whether it is committed.
        store: sealed records: number → start, end.
        running: attempts, zombies among them.
        emitted: per micro-batch, every range that an attempt has emitted.
        said: per micro-batch, every fold that a planner has made.
        started: attempts that were ever started for the micro-batch.
        kept_from: records of earlier micro-batches were deleted.
    """

    number: int = 1
    start: int = 0
    is_over: bool = False
    store: tuple[tuple[int, int, int], ...] = ()
    running: tuple[Running, ...] = ()
    emitted: frozenset[tuple[int, int, int]] = frozenset()
    said: frozenset[tuple[int, int]] = frozenset()
    started: int = 0
    kept_from: int = 1

    def sealed(self, number: int) -> JournalRecord | None:
        return next((record(n, start, end) for n, start, end in self.store if n == number), None)


class StoreOf:
    """The journal of a world, for `close`."""

    def __init__(self, world: World) -> None:
        self.world = world

    def read(self, key: RecordKey) -> JournalRecord | None:
        return self.world.sealed(key.number)

    def seal(self, made: JournalRecord) -> SealResult:
        if self.read(made.key) is not None:
            return SealResult.TAKEN
        self.world = stored(self.world, made)
        return SealResult.SEALED

    def delete_below(self, journal: str, number: int) -> None:
        """What was emitted is forgotten, too: the rules held until now."""
        world = self.world
        self.world = replace(
            world,
            store=tuple(entry for entry in world.store if entry[0] >= number),
            emitted=frozenset(entry for entry in world.emitted if entry[0] >= number),
            kept_from=max(world.kept_from, number),
        )


def stored(world: World, made: JournalRecord) -> World:
    entry = (made.key.number, int(made.starts.get(S, 0) or 0), int(made.ends.get(S, 0) or 0))
    return replace(world, store=(*world.store, entry))


Closing = Callable[[World], tuple[World, int]]
"""Closes the micro-batch of a world; returns the next start."""


def closing(world: World) -> tuple[World, int]:
    """What a planner does."""
    journal = StoreOf(world)
    records = close(journal, JOURNAL, world.number, [0])
    assert records is not None
    return journal.world, int(folded({S: world.start}, records)[S] or 0)


def only_looking(world: World) -> tuple[World, int]:
    """A planner that seals nothing for a task that did not run."""
    found = world.sealed(world.number)
    return world, int(folded({S: world.start}, [] if found is None else [found])[S] or 0)


def deleting_too_much(world: World) -> tuple[World, int]:
    """A planner that deletes records before what it has found in them is logged."""
    after, start = closing(world)
    return without_records(after, world.number + 1), start


def deletions(world: World) -> Iterator[World]:
    """With all records, and with those of the newest micro-batch alone."""
    yield world
    if world.kept_from < world.number:
        yield without_records(world, world.number)


def without_records(world: World, number: int) -> World:
    """Delete the records of micro-batches before a number."""
    journal = StoreOf(world)
    journal.delete_below(JOURNAL, number)
    return journal.world


def following(world: World, make: type[Attempt], closes: Closing) -> Iterator[World]:
    """Every world that may come next."""
    if not world.is_over:
        # committed, whatever has run: an action may skip the task
        yield replace(world, is_over=True)
        if world.started < ATTEMPTS:
            fresh = Running(make(key=RecordKey(JOURNAL, world.number, 0)), world.start)
            yield replace(world, running=(*world.running, fresh), started=world.started + 1)
    else:
        after, start = closes(world)
        after = replace(after, said=after.said | {(world.number, start)})
        for kept in deletions(after):
            yield kept  # the planner dies before this is logged
            if world.number < BATCHES:
                yield replace(kept, number=world.number + 1, start=start, is_over=False, started=0)
    for index, one in enumerate(world.running):
        for after, moved in stepped(world, one):
            rest = after.running[:index] + after.running[index + 1 :]
            yield replace(after, running=rest if moved is None else (*rest, moved))


def stepped(world: World, one: Running) -> Iterator[tuple[World, Running | None]]:
    """Every outcome of an attempt's next step."""
    attempt = one.attempt
    match attempt.step:
        case LookUp():
            yield world, replace(one, attempt=attempt.looked(world.sealed(attempt.key.number)))
        case Fetch():
            for end in (one.start, one.start + 1):
                yield (
                    world,
                    replace(
                        one, attempt=attempt.fetched(record(attempt.key.number, one.start, end))
                    ),
                )
        case Seal(made):
            if world.sealed(made.key.number) is not None:
                yield world, replace(one, attempt=attempt.sealed(SealResult.TAKEN))
            else:
                after = stored(world, made)
                yield after, replace(one, attempt=attempt.sealed(SealResult.SEALED))
                yield after, replace(one, attempt=attempt.sealed(SealResult.UNKNOWN))
            yield world, replace(one, attempt=attempt.sealed(SealResult.UNKNOWN))
        case Emit(made, _):
            key, start = made.key, int(made.starts.get(S, one.start) or 0)
            entry = (key.number, start, int(made.ends.get(S, start) or 0))
            taken = {entry} if key.number >= world.kept_from else set()
            yield replace(world, emitted=world.emitted | taken), None


def explored(
    make: type[Attempt] = Attempt, closes: Closing = closing, until: str = ""
) -> tuple[int, set[str]]:
    """Number of worlds that can be reached, and the rules that are broken in any of them.

    The search ends early when the rule `until` is broken.
    """
    first = World()
    seen, todo, broken = {name_of(first)}, [first], set[str]()
    while todo and until not in broken:
        world = todo.pop()
        broken |= rules_broken(world)
        for after in following(world, make, closes):
            if (name := name_of(after)) not in seen:
                seen.add(name)
                todo.append(after)
    return len(seen), broken


def name_of(world: World) -> tuple[Any, ...]:
    """Equal for worlds that differ in nothing but the order of what runs."""
    running = sorted(map(running_name, world.running))
    rest = (world.number, world.start, world.is_over, world.started, world.emitted, world.said)
    return (*rest, world.kept_from, tuple(sorted(world.store)), tuple(running))


def running_name(one: Running) -> tuple[Any, ...]:
    """What tells an attempt from another one."""
    step, own = one.attempt.step, one.attempt.own
    shown = step.record.ends.get(S, -1) if isinstance(step, Emit | Seal) else -1
    return (
        one.attempt.key.number,
        one.start,
        type(step).__name__,
        shown,
        -2 if own is None else own.ends.get(S, -1),
    )


def rules_broken(world: World) -> set[str]:
    """Names of the rules that do not hold in a world."""
    ranges: dict[int, set[tuple[int, int]]] = {}
    for number, start, end in world.emitted:
        ranges.setdefault(number, set()).add((start, end))
    folds: dict[int, set[int]] = {}
    for number, start in world.said:
        folds.setdefault(number, set()).add(start)
    rules = {
        "all attempts at a task emit the same": all(len(found) == 1 for found in ranges.values()),
        "nothing is emitted before it is sealed": all(
            world.sealed(number) is not None for number in ranges
        ),
        "what was folded never changes": all(len(found) == 1 for found in folds.values()),
        "the next start is where what was emitted ends": all(
            start in folds.get(number, {start})
            for number, found in ranges.items()
            for start in {e for _, e in found}
        ),
    }
    return {name for name, holds in rules.items() if not holds}


class Hasty(Attempt):
    """Emits what it has fetched without having sealed it."""

    def fetched(self, record: JournalRecord) -> Any:
        return replace(self, own=record, step=Emit(record, is_buffered=True))


class Trusting(Attempt):
    """Takes a lost answer for success."""

    def sealed(self, result: SealResult) -> Any:
        assert self.own is not None
        return replace(
            self, step=LookUp() if result is SealResult.TAKEN else Emit(self.own, is_buffered=True)
        )


class Stubborn(Attempt):
    """Emits its own buffer although another attempt was first."""

    def looked(self, found: JournalRecord | None) -> Any:
        if found is not None and self.own is not None:
            return replace(self, step=Emit(self.own, is_buffered=True))
        return super().looked(found)


BUGS: Final[tuple[tuple[type[Attempt], Closing, str], ...]] = (
    (Hasty, closing, "nothing is emitted before it is sealed"),
    (Trusting, closing, "nothing is emitted before it is sealed"),
    (Stubborn, closing, "all attempts at a task emit the same"),
    (Attempt, only_looking, "what was folded never changes"),
    (Attempt, deleting_too_much, "what was folded never changes"),
)
"""Seeded bugs: what attempts or the planner do wrong, and the rule that it breaks."""
