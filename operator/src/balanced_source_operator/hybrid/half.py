"""The operator half of the hybrid source; see `OperatorHalf`.

Everything is done by the halves of its parts.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, Self

from balanced_source.api import Measure, Source, SplitId
from balanced_source.connectors.hybrid import KIND, HybridSource, checked_hybrid, names_of
from balanced_source.errors import ConnectorError, ContractViolationError, InvalidSpecError
from balanced_source_adapters.connectors import installed
from balanced_source_operator.contract.blame import blamed
from balanced_source_operator.contract.choice import SOURCE
from balanced_source_operator.contract.half import (
    Common,
    Losses,
    OperatorHalf,
    TextReference,
    Texts,
    half_of,
)
from balanced_source_operator.contract.half_answers import checked_table, checked_texts
from balanced_source_operator.hybrid.spec import HybridSpec, PartChoice

_FIXED: Final = "cannot be changed: create a new source instead"

_ORDER: Final = "kinds and order of the parts"
_START: Final = "startAfter"
"""Names of what must not change. Stored: never changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A part of a spec, with the half of its connector.

    Attributes:
        choice: what the user wrote.
        half: of its connector.
        config: its branch.
        field: path of the branch.
        name: see `HybridPart.name`.
    """

    choice: PartChoice
    half: OperatorHalf[Any]
    config: Any
    field: str
    name: str

    @classmethod
    def of(cls, choice: PartChoice, place: str, name: str) -> Self:
        """Return the part at a path.

        Raises:
            InvalidSpecError: a source of its kind cannot be a part, or its connector refuses it.
            ConnectorError: its connector cannot be used.
        """
        half = choice.half(place)
        if not half.can_be_part:
            raise InvalidSpecError(
                f"a source of kind {choice.kind!r} cannot be a part of a hybrid source: read it by"
                " itself",
                field=place,
            )
        config, field = choice.config(half, place), choice.field_in(place)
        return cls(choice=choice, half=half, config=config, field=field, name=name)

    def texts(self) -> tuple[TextReference, ...]:
        """Return the texts that it refers to; raises what `texts_of` does."""
        with blamed(self.choice.kind, self.field):
            return checked_texts(self.half.texts(self.config))

    def options(self) -> Mapping[str, str]:
        """Return as options what the packaged application must know of it."""
        with blamed(self.choice.kind, self.field):
            own = checked_table("part_options", self.half.part_options(self.config))
        return {"connector": self.choice.kind, **own}

    def source(
        self, make: Callable[[Self], Source[Any, Any]]
    ) -> tuple[Source[Any, Any], Measure | None]:
        """Return its source, and what it measures of the part before."""
        with blamed(self.choice.kind, self.field):
            made = _checked(self.choice.kind, make(self))
        after = self.choice.start_after
        return made, after.measure if after is not None else None


def _columns(start: Measure | None) -> Measure | None:
    """Return what must not change of a start."""
    return None if start is None else start.columns


class HybridOperatorHalf(OperatorHalf[HybridSpec]):
    """Sources that are read in turn."""

    spec = HybridSpec
    description = "Sources that are read in turn, such as files and then Kafka."
    can_have_hosts = False
    awaits_end = True
    can_be_part = False

    def texts(self, spec: HybridSpec) -> tuple[TextReference, ...]:
        found = (part.texts() for part in _parts(spec, f"{SOURCE}.{KIND}"))
        return tuple(dict.fromkeys(chain.from_iterable(found)))

    def to_source(
        self, spec: HybridSpec, common: Common, texts: Texts, *, field: str
    ) -> HybridSource:
        return _source(
            spec,
            field,
            lambda part: part.half.to_source(part.config, common, texts, field=part.field),
        )

    def reader_options(self, spec: HybridSpec) -> Mapping[str, str]:
        parts = [part.options() for part in _parts(spec, f"{SOURCE}.{KIND}")]
        return {"parts": json.dumps(parts)}

    def check_change(
        self, before: Source[Any, Any], after: Source[Any, Any], *, field: str
    ) -> None:
        """Refuse what the halves of the parts refuse, and what the API server refuses.

        Local mode has none.
        """
        former, hybrid = _hybrid(before), _hybrid(after)
        if former.names != hybrid.names:
            raise InvalidSpecError(f"{_ORDER} {_FIXED}", field=field)
        for number, (old, new) in enumerate(zip(former.parts, hybrid.parts, strict=True)):
            place = f"{field}[{number}]"
            if _columns(old.start) != _columns(new.start):
                raise InvalidSpecError(_FIXED, field=f"{place}.{_START}")
            kind = new.source.kind
            with blamed(kind, f"{place}.{kind}"):
                half_of(kind).check_change(old.source, new.source, field=f"{place}.{kind}")

    def fixed(self, source: Source[Any, Any]) -> Mapping[str, str]:
        """Return what `check_change` compares."""
        hybrid = _hybrid(source)
        columns = (_columns(part.start) for part in hybrid.parts)
        starts = [start.to_json() if start else None for start in columns]
        found = {_ORDER: ", ".join(hybrid.names), _START: json.dumps(starts, sort_keys=True)}
        for number, part in enumerate(hybrid.parts):
            kind = part.source.kind
            with blamed(kind, f"{SOURCE}.{KIND}[{number}].{kind}"):
                own = checked_table("fixed", half_of(kind).fixed(part.source))
            found |= {f"{part.name}: {name}": value for name, value in own.items()}
        return found

    def recalled(
        self,
        spec: HybridSpec,
        common: Common,
        texts: Texts,
        *,
        fixed: Mapping[str, str],
        field: str,
    ) -> HybridSource:
        def made(part: _Part) -> Source[Any, Any]:
            prefix = f"{part.name}: "
            own = {n.removeprefix(prefix): v for n, v in fixed.items() if n.startswith(prefix)}
            return part.half.recalled(part.config, common, texts, fixed=own, field=part.field)

        return _source(spec, field, made)

    def losses(self, numbers: Mapping[str, int]) -> Losses:
        """Return what the halves of all kinds say.

        The numbers of the parts have been put together, and each half knows its own names.
        """
        found = list(_losses(numbers))
        counts = [losses.records for losses in found]
        return Losses(
            records=sum(filter(None, counts)) or (None if None in counts else 0),
            gaps=sum(losses.gaps for losses in found),
            problems=tuple(chain.from_iterable(losses.problems for losses in found)),
            doubts=tuple(chain.from_iterable(losses.doubts for losses in found)),
        )

    def left_out(self, source: Source[Any, Any], split_id: SplitId) -> str:
        """Return what the half of the split's part says."""
        hybrid = _hybrid(source)
        part = next((part for part in hybrid.parts if part.name == split_id[0]), None)
        if part is None:
            return ""
        return half_of(part.source.kind).left_out(part.source, split_id[1:])


def _losses(numbers: Mapping[str, int]) -> Iterator[Losses]:
    for kind in installed().kinds:
        # A connector that is broken, or has no such half, is not a part of this source.
        with suppress(ConnectorError):
            half = half_of(kind)
            if half.can_be_part:
                yield half.losses(numbers)


def _parts(spec: HybridSpec, field: str) -> list[_Part]:
    names = names_of([choice.kind for choice in spec.parts])
    return [
        _Part.of(choice, f"{field}[{number}]", name)
        for number, (choice, name) in enumerate(zip(spec.parts, names, strict=True))
    ]


def _source(
    spec: HybridSpec, field: str, make: Callable[[_Part], Source[Any, Any]]
) -> HybridSource:
    return checked_hybrid([part.source(make) for part in _parts(spec, field)], field=field)


def _checked(kind: str, made: object) -> Source[Any, Any]:
    """Return the source that the half of a part has made, if it is one."""
    if not isinstance(made, Source) or made.kind != kind:
        raise TypeError(
            f"a {type(made).__name__} was made for a part, and a Source of kind {kind!r} was"
            " expected"
        )
    return made


def _hybrid(source: Source[Any, Any]) -> HybridSource:
    if not isinstance(source, HybridSource):
        raise ContractViolationError(f"{type(source).__name__} is not a hybrid source")
    return source
