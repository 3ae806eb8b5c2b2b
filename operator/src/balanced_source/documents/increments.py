"""Assignments as increments.

A large base that is written once, and a small document that says what is different.

A rescale of a hundred thousand splits that moves a few hundred of them is published in a few
kilobytes. A small assignment is published whole: it stays readable.
"""

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

from balanced_source.api import Json, SplitId
from balanced_source.documents import assignment as whole
from balanced_source.documents import columns, envelope, storage
from balanced_source.documents.assignment import Assignment
from balanced_source.documents.parts import Content
from balanced_source.errors import CorruptDocumentError
from balanced_source.maps import different

V = TypeVar("V")

KIND: Final = envelope.DocumentKind(name="AssignmentIncrement", version=1, upgrades={})

TOO_MUCH: Final = 4
"""An increment that has more than 1/4 of its base's size, or of its splits, becomes a new base."""

_TABLES: Final = ("owners", "starts", "since", "attributes")


@dataclass(frozen=True, slots=True)
class Base:
    """An assignment that increments build upon, and its document."""

    assignment: Assignment
    text: str
    digest: str

    @classmethod
    def read(cls, text: str, *, source: str | None) -> "Base":
        """From its document.

        Raises:
            CorruptDocumentError, IncompatibleVersionError: see `envelope.decode`.
        """
        return cls(whole.decode(text, source=source), text, _digest(text))


def encode(assignment: Assignment, *, source: str, base: Base | None) -> tuple[str, Base | None]:
    """The document of an assignment, and the base it builds upon: `base` if that can be used."""
    if base is not None and (text := _small_increment(assignment, source, base)) is not None:
        return text, base
    text = whole.encode(assignment, source=source)
    # A small assignment is published whole, so that people can read it.
    if len(text) <= storage.PLAIN_LIMIT:
        return text, None
    fresh = Base(assignment, text, _digest(text))
    return _increment(assignment, source, fresh, _Difference()), fresh


def decode(content: Content, *, source: str | None = None) -> Assignment:
    """Read an assignment, whole or as an increment.

    Raises:
        CorruptDocumentError, IncompatibleVersionError: see `envelope.decode`.
    """
    if content.base is None:
        return whole.decode(content.document, source=source)
    return apply(content.document, Base.read(content.base, source=source), source=source)


def apply(document: str, base: Base, *, source: str | None = None) -> Assignment:
    """Read an increment upon `base`.

    Raises:
        CorruptDocumentError: it builds upon another base; and see `envelope.decode`.
        IncompatibleVersionError: see `envelope.decode`.
    """
    body = envelope.decode(KIND, document, source=source)

    def build(content: dict[str, Any]) -> Assignment:
        # Upon another base the tables would be wrong, and nothing else would tell.
        if content["base"] != base.digest:
            raise CorruptDocumentError("the increment builds upon another base")
        tables: dict[str, Any] = {
            name: _applied(getattr(base.assignment, name), content[name]) for name in _TABLES
        }
        retained = _applied(dict.fromkeys(base.assignment.retained), content["retained"])
        # The rest is written in the oldest version that can say it, which may be older than ours.
        rest = envelope.upgraded(whole.KIND, content["rest"], int(content["version"]))
        return replace(whole.from_json(rest), **tables, retained=frozenset(retained))

    return envelope.parse_body(KIND, body, build)


def _small_increment(assignment: Assignment, source: str, base: Base) -> str | None:
    known = base.assignment.owners
    owners = _Difference.between(known, assignment.owners)
    is_changed_much = len(owners.changed) * TOO_MUCH > max(len(known), len(assignment.owners))
    # Positions where splits began are most of a first base, and of no use once the splits are
    # adopted.
    starts = len(base.assignment.starts)
    is_outdated = 2 * starts > len(known) and 4 * len(assignment.starts) < len(known)
    # Decided before the increment is encoded, which would be thrown away.
    if is_changed_much or is_outdated:
        return None
    text = _increment(assignment, source, base, owners)
    return (
        text
        if len(text) * TOO_MUCH <= max(len(base.text), TOO_MUCH * storage.PLAIN_LIMIT)
        else None
    )


def _increment(assignment: Assignment, source: str, base: Base, owners: "_Difference") -> str:
    rest = replace(assignment, owners={}, starts={}, since={}, attributes={}, retained=frozenset())
    before, after = dict.fromkeys(base.assignment.retained), dict.fromkeys(assignment.retained)
    others = {
        n: _Difference.between(getattr(base.assignment, n), getattr(assignment, n))
        for n in _TABLES[1:]
    }
    body: dict[str, Json] = {
        "base": base.digest,
        "version": whole.version_of(assignment),
        "rest": whole.to_json(rest),
        "retained": _Difference.between(before, after).to_json(),
        "owners": owners.to_json(),
        **{name: difference.to_json() for name, difference in others.items()},
    }
    return envelope.encode(KIND, source, body)


@dataclass(frozen=True, slots=True)
class _Difference:
    """Between two versions of a table.

    Attributes:
        changed: what to set.
        gone: what to drop; None drops everything.
    """

    changed: Mapping[SplitId, Any] = field(default_factory=dict)
    gone: Collection[SplitId] | None = ()

    @classmethod
    def between(cls, before: Mapping[SplitId, Any], after: Mapping[SplitId, Any]) -> "_Difference":
        # Tables are replaced, never changed, so the same object has no difference.
        if before is after:
            return cls()
        # Starts are gone at once when all splits are adopted: no need to name each.
        if before and not after:
            return cls(gone=None)
        changed = dict(different(before, after))
        fresh = sum(s not in before for s in changed)
        # The count tells without a search whether anything is gone at all.
        is_smaller = len(after) < len(before) + fresh
        return cls(changed, [s for s in before if s not in after] if is_smaller else ())

    def to_json(self) -> Json:
        drop = None if self.gone is None else columns.encode_ids(self.gone)
        return {"set": columns.encode_map(self.changed), "drop": drop}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _applied(before: Mapping[SplitId, V], change: Mapping[str, Json]) -> dict[SplitId, V]:
    kept = {} if change["drop"] is None else dict(before)
    for split_id in columns.decode_ids(change["drop"] or []):
        del kept[split_id]
    return {**kept, **columns.decode_map(change["set"])}
