"""What is remembered of all files that were ever listed: bounded, however many there are. Pure.

Files are taken in the order of their keys (time of change, path). The *horizon* is a key: every
file at or before it counts as taken. Files behind it are in the *window* if they were taken. So
files may appear late, with the time of others or an earlier one, as long as they are behind the
horizon:

    ────────────── horizon ─────────── frontier ───────────►  (time, path)
       taken, all        window: taken ones by name   new files

The horizon follows the newest taken file at a distance of `late` seconds, or less if the window is
full. What appears before it is too late: it cannot be told from a file that was read. Counters of
the files there (module `counting`) tell that it happened, so that the policy decides.

A listing may leave out files at or before the horizon, which is cheaper: those up to the *floor*
where names grow with time, or all that the listing before has shown already. Then nothing is known
about late files until the next whole one.
"""

import base64
import enum
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate, takewhile
from typing import Any, Final, NamedTuple, Self

from balanced_source.connectors.files import counting
from balanced_source.connectors.files.counting import Compared, Counter, compare, count, digest
from balanced_source.connectors.files.sifting import Nearest
from balanced_source.connectors.files.split import File
from balanced_source.errors import CorruptDocumentError

WINDOW: Final = 8192
"""Files in the window at most."""

SPARE: Final = 16
"""Pages of new files that one listing may provide."""

_NANOS: Final = 1_000_000_000


class Key(NamedTuple):
    """Place of a file in the order in which files are taken."""

    modified: int
    path: str


START: Final = Key(-(2**63), "")
"""Before all files."""


class Extent(enum.Enum):
    """Which files a listing has."""

    WHOLE = enum.auto()
    """All."""

    ABOVE_FLOOR = enum.auto()
    """All whose paths are above the floor of the cursor."""

    REST = enum.auto()
    """Those behind the horizon that the listing before has shown."""

    NAMED = enum.auto()
    """Some that a notification has named. Others may be there, so the horizon stays."""


class Seen(NamedTuple):
    """A file in the window: when it was changed, and a hash of its state."""

    modified: int
    state: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """See the module.

    Attributes:
        horizon: key up to which everything was taken.
        newest: time of the newest file that was taken.
        window: hash of the path → the file; those behind the horizon that were taken.
        before: bucket → files at or before the horizon, as the last listing found them; None: not
            known, in a state of a build that counted in another way.
        lost: bucket → files at or before the horizon that listings do not show any more.
        until: time of the newest file of the first listing, for a source that ends; None: it takes
            what comes.
        late: files that came too late, so far, at least.
        changed: files that were changed after they were taken, so far.
        floor: every file with a path up to this one is at or before the horizon, as far as listings
            have shown.
        partial: listings since the last whole one.
    """

    horizon: Key = START
    newest: int = START.modified
    window: Mapping[int, Seen] = field(default_factory=dict)
    before: Mapping[int, Counter] | None = field(default_factory=dict)
    lost: Mapping[int, tuple[Counter, ...]] = field(default_factory=dict)
    until: int | None = None
    late: int = 0
    changed: int = 0
    floor: str = ""
    partial: int = 0

    def to_json(self) -> Any:
        """Return the cursor as JSON; equal cursors give equal JSON."""
        return {
            "horizon": list(self.horizon),
            "newest": self.newest,
            "window": _window_json(self.window),
            "counters": None if self.before is None else counting.to_json(self.before),
            "until": self.until,
            "late": self.late,
            "changed": self.changed,
            "floor": self.floor,
            "partial": self.partial,
            **({"lost": counting.losses_to_json(self.lost)} if self.lost else {}),
        }

    @classmethod
    def from_json(cls, data: Any) -> Self:
        """Inverse of `to_json`; None is the cursor before the first listing.

        Raises:
            CorruptDocumentError: not of that form.
        """
        if data is None:
            return cls()
        try:
            modified, path = data["horizon"]
            return cls(
                horizon=Key(int(modified), str(path)),
                newest=int(data["newest"]),
                window=_window_from_json(data["window"]),
                before=_counters_from_json(data.get("counters")),
                lost=counting.losses_from_json(data.get("lost", ())),
                until=None if data["until"] is None else int(data["until"]),
                late=int(data["late"]),
                changed=int(data["changed"]),
                floor=str(data["floor"]),
                partial=int(data["partial"]),
            )
        except (AttributeError, TypeError, ValueError, KeyError) as error:
            raise CorruptDocumentError(f"malformed cursor of files: {error!r}") from error


class Taken(NamedTuple):
    """What a listing means.

    Attributes:
        files: new ones, in their order; the caller reads them from now on.
        cursor: after them.
        has_more: whether there are more new files than these.
        late: files that came too late since the last listing, at least.
        changed: paths of files that were changed after they were taken, since the last listing.
        rest: what the next call may be given instead of a listing, as one that is not whole; empty:
            list again.
    """

    files: tuple[File, ...]
    cursor: Cursor
    has_more: bool
    late: int
    changed: tuple[str, ...]
    rest: tuple[File, ...] = ()


def take(
    cursor: Cursor,
    listed: Iterable[File],
    *,
    limit: int,
    late: float,
    ends: bool,
    extent: Extent = Extent.WHOLE,
    splits_of: Callable[[File], int] = lambda _: 1,
) -> Taken:
    """Return the next new files. Memory does not grow with the number of listed files.

    Args:
        cursor: of the last listing.
        listed: files, in any order, each once.
        limit: splits at most, but a whole file at least; a file counts for one at least.
        late: seconds for which a file may come later than newer ones.
        ends: whether only files count that were there at the first listing.
        extent: which files they are.
        splits_of: number of splits of a file.
    """
    # Some pages are kept, so that one listing serves several; all might not fit into memory.
    sifted = _sifted(cursor, listed, keep=SPARE * limit)
    is_whole = extent is Extent.WHOLE
    too_late, lost = _compared(cursor, sifted.before, extent)
    until = cursor.until
    # Files that come while a source with an end is read are not part of it.
    if ends and until is None:
        until = sifted.nearest.newest
    behind = sorted((*sifted.known, *sifted.nearest.files))
    new, changed, window = _sorted_out(cursor, behind)
    taken = _first(new, limit, splits_of)
    window |= {_hash(file.path): Seen(file.modified, _hash(file.identity)) for file in taken}
    newest = max([cursor.newest, *(file.modified for file in taken)])
    # The horizon must not pass new files that wait for the next page.
    left = next((Key(file.modified, file.path) for file in new[len(taken) :]), None)
    horizon = cursor.horizon
    if extent is not Extent.NAMED:
        horizon = _horizon(horizon, _taken(behind, left), newest=newest, late=late)
        horizon = max(horizon, _crowded(window, left))
    before = sifted.before if is_whole else cursor.before
    window, passed = _passed(window, behind, horizon)
    after = Cursor(
        horizon=horizon,
        newest=newest,
        window=_kept(window, behind),
        before=None if before is None else counting.added(before, passed.shown),
        lost=counting.with_loss(lost, passed.missing),
        until=until,
        late=cursor.late + too_late,
        changed=cursor.changed + len(changed),
        floor=cursor.floor
        if extent in (Extent.REST, Extent.NAMED)
        else _floor(behind, horizon, sifted.nearest.lowest),
        partial=0 if is_whole else cursor.partial + int(extent is Extent.ABOVE_FLOOR),
    )
    # What is left is enough for another page: the next call need not list again.
    rest = tuple(behind) if len(new) > len(taken) + limit else ()
    return Taken(tuple(taken), after, left is not None, too_late, changed, rest)


def _compared(cursor: Cursor, before: Mapping[int, Counter], extent: Extent) -> Compared:
    if extent is Extent.WHOLE and cursor.before is not None:
        return compare(cursor.before, before, cursor.lost)
    # A listing that is not whole leaves out files before the horizon, and cannot tell.
    return Compared(0, dict(cursor.lost))


def _first(files: Sequence[File], limit: int, splits_of: Callable[[File], int]) -> Sequence[File]:
    """Return as many of the first files as have no more splits than allowed; one at least."""
    sums = accumulate(max(1, splits_of(file)) for file in files)
    return files[: max(1, sum(1 for _ in takewhile(lambda total: total <= limit, sums)))]


class _Sifted(NamedTuple):
    """A listing, seen from a cursor.

    Attributes:
        before: counters of the files at or before the horizon.
        known: files in the window.
        nearest: new files.
    """

    before: dict[int, Counter]
    known: list[File]
    nearest: Nearest


def _sifted(cursor: Cursor, listed: Iterable[File], *, keep: int) -> _Sifted:
    found = _Sifted({}, [], Nearest(keep))
    for file in listed:
        # Plain tuples and hashes without a cache: this runs a million times.
        if (file.modified, file.path) <= cursor.horizon:
            name = digest(file.path)
            # The horizon passed the time of this one while no listing showed it.
            if file.modified == cursor.horizon.modified and name in cursor.window:
                found.known.append(file)
            else:
                count(found.before, name, digest(file.identity))
        elif cursor.window and digest(file.path) in cursor.window:
            found.known.append(file)
        elif cursor.until is None or file.modified <= cursor.until:
            found.nearest.add(file)
    return found


def _floor(behind: Sequence[File], horizon: Key, lowest: str | None) -> str:
    """Return a path below all files behind the horizon; empty if there are none."""
    waiting = [file.path for file in behind if Key(file.modified, file.path) > horizon]
    return min([*waiting, *([] if lowest is None else [lowest])], default="")[:-1]


def _sorted_out(
    cursor: Cursor, behind: Sequence[File]
) -> tuple[list[File], tuple[str, ...], dict[int, Seen]]:
    """Return the new files, paths of changed ones, and the window with these as they are now."""
    window, new, changed = dict(cursor.window), list[File](), list[str]()
    for file in behind:
        name, state = _hash(file.path), _hash(file.identity)
        seen = window.get(name)
        if seen is None:
            new.append(file)
        elif seen.state != state:
            changed.append(file.path)
            # Told once: the window has the file as it is now.
            window[name] = Seen(file.modified, state)
    return new, tuple(changed), window


def _taken(behind: Sequence[File], left: Key | None) -> list[Key]:
    """Return the keys of taken files before the first new one that is left for the next page."""
    keys = [Key(file.modified, file.path) for file in behind]
    return keys if left is None else [key for key in keys if key < left]


def _horizon(former: Key, taken: Sequence[Key], *, newest: int, late: float) -> Key:
    """Return the key up to which no file is told from another any more.

    All files before it must be taken.
    """
    oldest = newest - round(late * _NANOS)
    # Earlier than `late` allows where the window is full: the state must stay bounded.
    count = max(bisect_left(taken, Key(oldest, "")), len(taken) - WINDOW)
    # Never back: what is before the horizon is not known by name any more.
    return max(former, taken[count - 1]) if count else former


def _crowded(window: Mapping[int, Seen], left: Key | None) -> Key:
    """Return up to where a window has too many files; before all of them if it has not.

    Files that vanish soon after they were read leave no listed file that the horizon could follow.
    Without it, a file whose name is dropped would be a new one when it comes back.
    """
    if len(window) <= 2 * WINDOW:
        return START
    # Not behind files of that time: more of them may come, and all files may have the same.
    oldest = sorted(seen.modified for seen in window.values())[-2 * WINDOW]
    return Key(oldest if left is None else min(oldest, left.modified), "")


class _Passed(NamedTuple):
    """Counters of files of the window that are at or before the horizon now.

    Attributes:
        shown: those that are listed.
        missing: those that are not.
    """

    shown: dict[int, Counter]
    missing: dict[int, Counter]


def _passed(
    window: Mapping[int, Seen], behind: Sequence[File], horizon: Key
) -> tuple[dict[int, Seen], _Passed]:
    """Return the window behind a horizon, and what left it.

    A file that is not listed now stays as long as its time allows: it may come back.
    """
    left, passed = dict(window), _Passed({}, {})
    for file in behind:
        if Key(file.modified, file.path) <= horizon:
            name = _hash(file.path)
            count(passed.shown, name, _hash(file.identity))
            left.pop(name, None)
    for name, seen in window.items():
        if name in left and seen.modified < horizon.modified:
            count(passed.missing, name, seen.state)
            del left[name]
    return left, passed


def _kept(window: dict[int, Seen], behind: Sequence[File]) -> dict[int, Seen]:
    """Return the window, without files that vanished if they are too many.

    Some stay for a while, because a listing of a network file system may lack a file for a moment.
    They leave first: without its name, a listed file would be read again.
    """
    if len(window) <= 2 * WINDOW:
        return window
    listed = {_hash(file.path) for file in behind}
    ordered = sorted(
        window.items(), key=lambda item: (item[0] in listed, item[1].modified, item[0])
    )
    return dict(ordered[-2 * WINDOW :])


def _counters_from_json(data: Any) -> dict[int, Counter] | None:
    return None if data is None else counting.from_json(data)


@lru_cache(maxsize=1 << 15)
def _hash(text: str) -> int:
    return digest(text)


def _window_json(window: Mapping[int, Seen]) -> list[Any]:
    """Group the files by time: many have the same where a store knows seconds only."""
    times: dict[int, list[tuple[int, int]]] = {}
    for name, seen in window.items():
        times.setdefault(seen.modified, []).append((name, seen.state))
    return [[time, _packed(pairs)] for time, pairs in sorted(times.items())]


def _packed(pairs: Iterable[tuple[int, int]]) -> str:
    data = b"".join(name.to_bytes(8) + state.to_bytes(8) for name, state in sorted(pairs))
    return base64.b64encode(data).decode()


def _window_from_json(rows: Any) -> dict[int, Seen]:
    found: dict[int, Seen] = {}
    for time, text in rows:
        data = base64.b64decode(text, validate=True)
        if len(data) % 16:
            raise ValueError("torn entry of the window")
        for at in range(0, len(data), 16):
            state = int.from_bytes(data[at + 8 : at + 16])
            found[int.from_bytes(data[at : at + 8])] = Seen(int(time), state)
    return found
