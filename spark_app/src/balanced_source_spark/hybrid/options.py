"""Reads the options of the hybrid source. Keys of the mappings are lower case."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

from balanced_source.api import Measure, Source
from balanced_source.assigners import RoundRobinAssigner
from balanced_source.connectors.hybrid import KIND, HybridSource, checked_hybrid, names_of
from balanced_source.errors import ConnectorError, InvalidSpecError
from balanced_source.names import shown
from balanced_source_adapters.connectors import installed
from balanced_source_spark.contract.half import AnyHalf, Choices, SparkHalf, half_of, secrets_in
from balanced_source_spark.contract.half_answers import asked
from balanced_source_spark.contract.option_table import (
    UNKNOWN,
    Option,
    check_options,
    is_embedded,
    rejected,
)
from balanced_source_spark.contract.secrets import GIVEN, WHOLE_FOLDER, QuerySecrets

START: Final = "startAfter"

_SHARED: Final = ("columns", "secretsdir", "statedir")
"""Options of the query that count for each part."""

_OF_QUERY: Final = ("secretsdir", "statedir")
"""Those of them that a part cannot have."""

_OPTION: Final = "option "
"""How the field of an error about an option begins."""

_COLUMNS: Final = ("topic", "partition", "offset")
"""Members of ``startAfter.offsets``, which are also the columns by default."""

_IDS: Final = "topicIds"

_MEMBERS: Final = {*_COLUMNS, _IDS}


@dataclass(frozen=True, slots=True, kw_only=True)
class PartRead:
    """What schema and tasks must know of a part. Pickled.

    Attributes:
        name: of the part.
        kind: of its connector.
        read: see `SparkHalf.read_options`.
    """

    name: str
    kind: str
    read: Any


@contextmanager
def _of_part(number: int) -> Iterator[None]:
    """Name the part in errors about one of its options, or about its connector."""
    place = f"parts[{number}]"
    try:
        yield
    except InvalidSpecError as error:
        message = str(error).removeprefix(f"{error.field}: ")
        if error.field == UNKNOWN:
            raise rejected(place, message) from error
        if not error.field.startswith(_OPTION) or place in error.field:
            raise
        raise rejected(f"{place}.{error.field.removeprefix(_OPTION)}", message) from error
    except ConnectorError as error:
        raise ConnectorError(f"{_OPTION}{place}: {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenPart:
    """A part as the user has written it.

    Attributes:
        number: of the part.
        kind: of its connector.
        half: its Spark half.
        options: of the part, with those of the query that count for it.
        start: see `HybridPart.start`.
    """

    number: int
    kind: str
    half: SparkHalf[Any]
    options: Mapping[str, str]
    start: Measure | None

    def asked(self, method: str, *arguments: Any) -> Any:
        """Return what a method of the half returns; errors name the part. See `asked`."""
        with _of_part(self.number):
            return asked(self.kind, self.half, method, *arguments)


def given_parts(options: Mapping[str, str]) -> tuple[GivenPart, ...]:
    """Return the parts in the options of a query.

    Raises:
        InvalidSpecError: names the option.
        ConnectorError: the connector of a part is not installed.
    """
    shared = {name: options[name] for name in _SHARED if name in options}
    listed = _array(options.get("parts"))
    return tuple(_part(number, entry, shared) for number, entry in enumerate(listed))


def part_reads(options: Mapping[str, str]) -> tuple[PartRead, ...]:
    """Return what schema and tasks must know of the parts, with the names of their options checked.

    Raises:
        InvalidSpecError: names the option.
    """
    parts, embedded = given_parts(options), is_embedded(options)
    names = names_of([part.kind for part in parts])
    return tuple(
        _read(name, part, is_embedded=embedded) for name, part in zip(names, parts, strict=True)
    )


def _read(name: str, part: GivenPart, *, is_embedded: bool) -> PartRead:
    own: Sequence[Option] | None = part.asked("options")
    if own is not None:
        written = {name: value for name, value in part.options.items() if name not in _SHARED}
        with _of_part(part.number):
            check_options(written, own, is_embedded=is_embedded)
    return PartRead(name=name, kind=part.kind, read=part.asked("read_options", part.options))


def hybrid_source(options: Mapping[str, str], choices: Choices) -> HybridSource:
    """Return the source of a query that runs without an operator and without local mode.

    Raises:
        InvalidSpecError: names the option.
    """
    if choices.is_stream and not options.get("statedir"):
        raise rejected(
            "stateDir",
            "is missing: a hybrid source keeps there which part is read, and where it started",
        )
    parts = given_parts(options)
    own = replace(choices, is_part=True)
    sources: list[tuple[Source[Any, Any], Measure | None]] = [
        (part.asked("source", part.options, own), part.start) for part in parts
    ]
    return checked_hybrid(sources, field="option parts")


def hybrid_secrets(options: Mapping[str, str]) -> QuerySecrets:
    """Return the secrets of the query. Only one part may have some among its options.

    Raises:
        InvalidSpecError: two parts have.
    """
    parts = given_parts(options)
    made: list[QuerySecrets] = [part.asked("secrets", part.options) for part in parts]
    found = [secrets for secrets in made if secrets.are_in_options]
    if len(found) > 1:
        raise rejected(
            "parts", "two parts have secrets among their options: put them into files of secretsDir"
        )
    named = frozenset(name for part in parts for name in _named_by(part))
    return replace(found[0] if found else secrets_in(options), apart=named - {GIVEN, WHOLE_FOLDER})


def _named_by(part: GivenPart) -> Iterable[str]:
    """Return the names of the Secrets that a part reads one by one."""
    choices = Choices(assigner=RoundRobinAssigner(), is_part=True)
    return installed().get(part.kind).secrets(part.asked("source", part.options, choices))


def _array(text: str | None) -> list[dict[str, Any]]:
    if text is None:
        raise rejected("parts", "is missing: list the parts as a JSON array")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise rejected("parts", f"expected a JSON array of objects, not {shown(text)}") from error
    if not (isinstance(found, list) and all(isinstance(entry, dict) for entry in found)):
        raise rejected("parts", f"expected a JSON array of objects, not {shown(text)}")
    return found


def _part(number: int, entry: Mapping[str, Any], shared: Mapping[str, str]) -> GivenPart:
    kind = str(entry.get("connector", ""))
    if not kind or kind == KIND:
        raise rejected(
            f"parts[{number}]", f"connector is {shown(kind)}: name one of {', '.join(_kinds())}"
        )
    written = {
        name.lower(): _text(value)
        for name, value in entry.items()
        if name not in ("connector", START)
    }
    if misplaced := next((name for name in entry if name.lower() in _OF_QUERY), None):
        raise rejected(
            f"parts[{number}].{misplaced}", "is an option of the query: set it beside parts"
        )
    with _of_part(number):
        half = half_of(kind)
    return GivenPart(
        number=number,
        kind=kind,
        half=_ranges(half, kind, number),
        options={**shared, **written},
        start=_start(entry.get(START), number),
    )


def _kinds() -> list[str]:
    return [kind for kind in installed().kinds if kind != KIND]


def _ranges(half: AnyHalf[Any], kind: str, number: int) -> SparkHalf[Any]:
    if not isinstance(half, SparkHalf):
        raise rejected(
            f"parts[{number}]",
            f"connector {kind!r} does not know how far its splits can be read, and cannot be a part"
            " of a hybrid source: read it by itself",
        )
    return half


def _text(value: Any) -> str:
    """Return the text of an option: Spark's writers give numbers and flags as text, too."""
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else json.dumps(value)


def _start(given: Any, number: int) -> Measure | None:
    if given is None:
        return None
    field = f"option parts[{number}].{START}"
    match given:
        case {"time": str(column), **rest} if column and not rest:
            return Measure(time=column)
        case {"offsets": dict(given), **rest} if not rest and given.keys() <= _MEMBERS:
            topic, partition, offset = (_column(given, name, field) for name in _COLUMNS)
            ids = _topic_ids(given.get(_IDS, {}), field)
            return Measure(offsets=(topic, partition, offset), identities=ids)
        case _:
            raise InvalidSpecError(
                'expected {"time": "column"} or {"offsets": {"topic": "column", "partition":'
                ' "column", "offset": "column", "topicIds": {"topic": "id"}}}',
                field=field,
            )


def _column(given: Mapping[str, Any], name: str, field: str) -> str:
    column = given.get(name, name)
    if not isinstance(column, str) or not column:
        raise InvalidSpecError(
            f"expected the name of a column, not {shown(json.dumps(column))}",
            field=f"{field}.offsets.{name}",
        )
    return column


def _topic_ids(given: Any, field: str) -> tuple[tuple[str, str], ...]:
    if not isinstance(given, Mapping) or not all(
        isinstance(topic_id, str) and topic_id for topic_id in given.values()
    ):
        raise InvalidSpecError(
            f"expected topics and their ids, not {shown(json.dumps(given))}",
            field=f"{field}.offsets.{_IDS}",
        )
    return tuple(sorted((str(topic), topic_id) for topic, topic_id in given.items()))
