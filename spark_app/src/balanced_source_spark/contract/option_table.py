"""Declares the options of a kind of source, and checks the names that a user has given."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from balanced_source.errors import InvalidSpecError
from balanced_source.names import shown
from balanced_source_adapters.suggestions import nearest
from balanced_source_adapters.version import documentation

ANY: Final = "*"
"""End of the name of an option that stands for all names which begin so, such as ``kafka.*``."""

SHOWN: Final = 5
"""Unknown names that a message quotes."""

_OF_TABLES: Final = frozenset(
    {"owner", "provider", "location", "comment", "external", "is_managed_location", "collation"}
)
"""Names that Spark itself adds when the source is read through a table of a catalog."""

_OF_TABLES_PREFIX: Final = "option."

_PATHS: Final = frozenset({"path", "paths"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """Declares one option.

    Attributes:
        name: as the documentation writes it; with `ANY` at its end, it stands for a whole family.
        meaning: what it does, in one or two sentences of Markdown.
        group: heading under which the reference lists it.
        default: the value without it, in Markdown; empty if there is none.
        is_embedded: whether it only has an effect when the driver assigns the splits itself.
        is_required: whether a query ends with an error without it; of an option with `is_embedded`,
            only a query whose driver assigns the splits itself.
        instead: for an option of Spark's own source that has no effect here: what happens instead.
    """

    name: str
    meaning: str
    group: str = ""
    default: str = ""
    is_embedded: bool = False
    instead: str = ""
    is_required: bool = False


def where_options_are(
    connector: str, own: Sequence[Option], *, package: str, reference: str
) -> str:
    """Return a sentence that says where the options of a connector of another package are.

    Args:
        connector: its kind.
        own: its options.
        package: that registers it.
        reference: see `AnyHalf.reference`; empty if it says nothing.
    """
    named = ", ".join(option.name for option in own) or "none"
    described = f" (described in {reference})" if reference else ""
    return (
        f"Connector {connector!r} of {package} has the options {named}{described}. Those of all"
        f' connectors are on the page "Options" of the documentation of Balanced Source{_address()}'
    )


def rejected(name: str, message: str) -> InvalidSpecError:
    """Return the error for the value of an option.

    Args:
        name: of the option, as the documentation writes it.
        message: what is wrong with it, and what to do.
    """
    return InvalidSpecError(message, field=f"option {name}")


UNKNOWN: Final = "options"
"""Field of an error about options that do not exist."""

_PAGE: Final = "reference/options/"


def options_page() -> str:
    """Return a sentence that says where the options of the built-in connectors are."""
    return f'All names are on the page "Options" of the documentation{_address()}'


def _address() -> str:
    return f": {site}{_PAGE}" if (site := documentation()) else ""


def is_embedded(options: Mapping[str, str]) -> bool:
    """Return whether the driver assigns the splits itself."""
    return not options.get("source") and not options.get("assignmentdir")


def check_options(
    given: Mapping[str, str],
    known: Sequence[Option],
    *,
    is_embedded: bool,
    where: str = "",
) -> tuple[str, ...]:
    """Return sentences about options that have no effect.

    Args:
        given: what the user has set, with names in lower case.
        known: all options of this kind of source.
        is_embedded: whether the driver assigns the splits itself.
        where: a sentence that says where all options are; by default, those of the built-in
            connectors.

    Raises:
        InvalidSpecError: an option is unknown, and the nearest name is suggested; or a required one
            is missing.
    """
    found = {name: _declared(name, known) for name in sorted(given) if not _is_spark_s_own(name)}
    if unknown := [name for name, option in found.items() if option is None]:
        raise _unknown(unknown, known, where or options_page())
    _check_required(given, known, is_embedded=is_embedded)
    options = [option for option in found.values() if option is not None]
    notes = [f"option {o.name} has no effect: {o.instead}" for o in options if o.instead]
    if not is_embedded and (idle := sorted({o.name for o in options if o.is_embedded})):
        notes.append(
            f"option {', '.join(idle)} has no effect: the BalancedSource says it. Change it there"
        )
    return tuple(notes)


def _check_required(
    given: Mapping[str, str], known: Iterable[Option], *, is_embedded: bool
) -> None:
    for option in known:
        counts = option.is_required and (is_embedded or not option.is_embedded)
        if counts and not given.get(option.name.lower()):
            raise rejected(option.name, f"must be set. {option.meaning}")


def _is_spark_s_own(name: str) -> bool:
    return name in _OF_TABLES or name.startswith(_OF_TABLES_PREFIX)


def _declared(name: str, known: Iterable[Option]) -> Option | None:
    for option in known:
        declared = option.name.lower()
        if name == declared or (declared.endswith(ANY) and name.startswith(declared[:-1])):
            return option
    return None


def _unknown(names: Sequence[str], known: Iterable[Option], where: str) -> InvalidSpecError:
    if names[0] in _PATHS:
        return rejected(
            names[0],
            "this source has no path: call load() without arguments, and name what to read in"
            " options",
        )
    hints = [f"{shown(name)}{_hint(name, known)}" for name in names[:SHOWN]]
    return InvalidSpecError(f"unknown option {', '.join(hints)}. {where}", field=UNKNOWN)


def _hint(name: str, known: Iterable[Option]) -> str:
    declared = {
        option.name.lower(): option.name for option in known if not option.name.endswith(ANY)
    }
    near = nearest(name, declared)
    return f" (did you mean {declared[near]}?)" if near else ""
