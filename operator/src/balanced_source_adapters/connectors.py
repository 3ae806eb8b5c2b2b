"""The connectors that are installed, each loaded when a source needs it."""

import pkgutil
import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from balanced_source.api import CONTRACT, OLDEST_CONTRACT, Connector, Source
from balanced_source.errors import ConnectorError, in_short
from balanced_source.names import shown, shown_value
from balanced_source_adapters.checked_connector import checked_connector
from balanced_source_adapters.mistakes import is_from_keyboard
from balanced_source_adapters.registrations import (
    OURS,
    Registration,
    Registrations,
    built_in_registrations,
    registered,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorPart:
    """What a connector names as ``module:Class``.

    Attributes:
        name: what it is, for messages.
        base: its class.
        derived: classes that the authors of connectors derive, for messages.
    """

    name: str
    base: type[Any]
    derived: str


_REFERENCE: Final = re.compile(r"([\w.]+)\s*:\s*([\w.]+)\s*(\[.*\]\s*)?")
"""``module:Class``, as packaging tools write it: with blanks, and with names of extras."""

CONNECTOR: Final = ConnectorPart(name="entry point", base=Connector, derived="Connector")


def load(found: Registration) -> Connector:
    """Return the connector that a package registers.

    Raises:
        ConnectorError: its package is broken, or does not keep the contract. Names the package.
    """
    made: Connector = make(found, found.reference, CONNECTOR)
    # States and checkpoints name the kind: a class under another name could not read its own.
    if made.kind != found.kind:
        raise _broken(found, f"{found.reference} says that its kind is {made.kind!r}")
    _check_contract(found, made.contract)
    return made if found.module in OURS else checked_connector(made)


def make(registration: Registration, reference: str, part: ConnectorPart) -> Any:
    """Return an instance of the class that ``module:attribute`` names.

    Raises:
        ConnectorError: it cannot be loaded, or is not what `part` says. Names the package.
    """
    found = _REFERENCE.fullmatch(reference)
    if found is None:
        raise _broken(
            registration, f"its {part.name} is {shown(reference)}, and module:Class was expected"
        )
    try:
        made = pkgutil.resolve_name(f"{found[1]}:{found[2]}")()
    # A module that ends the process must not end it for the sources of other connectors.
    except BaseException as error:
        if is_from_keyboard(error):
            raise
        raise _unloadable(registration, reference, error) from error
    if not isinstance(made, part.base):
        raise _broken(registration, f"{reference} is not a class derived from {part.derived}")
    return made


def _check_contract(found: Registration, version: object) -> None:
    """Refuse a connector whose contract this release does not keep."""
    if type(version) is not int:
        raise _broken(
            found, f"its contract is {shown_value(version)}, and a whole number was expected"
        )
    if version > CONTRACT:
        raise ConnectorError(
            f"connector {found.kind!r} of {found.package} is written for version {version} of the"
            f" contract of connectors, and this release has version {CONTRACT}: upgrade"
            " balanced-source, or install an older release of the package"
        )
    if version < OLDEST_CONTRACT:
        raise ConnectorError(
            f"connector {found.kind!r} of {found.package} is written for version {version} of the"
            f" contract of connectors, and this release supports versions from"
            f" {OLDEST_CONTRACT} on: install a newer release of the package"
        )


def _unloadable(found: Registration, reference: str, error: BaseException) -> ConnectorError:
    missing = error.name if isinstance(error, ModuleNotFoundError) and error.name else ""
    root = missing.partition(".")[0]
    # A part of this project that is missing is another release; the whole is not installed.
    if not missing or (root in OURS and root != missing):
        return _broken(found, f"{reference} cannot be loaded: {in_short(error)}")
    if root == found.module:
        return ConnectorError(
            f"connector {found.kind!r} of {found.package} is broken: its module {missing!r} is"
            " missing. Install the package again"
        )
    return ConnectorError(
        f"connector {found.kind!r} of {found.package} cannot be loaded: {reference} needs module"
        f" {missing!r}, which is not installed for {sys.executable}. Install it there; under"
        " the operator, add it to the image"
    )


def _broken(found: Registration, what: str) -> ConnectorError:
    return ConnectorError(
        f"connector {found.kind!r} of {found.package} is broken: {what}. Install a release that"
        " fits this one, or report this to the authors of the package"
    )


class Connectors:
    """Connectors by kind, each loaded once. A broken one fails only who asks for it.

    Args:
        registrations: of all kinds. The same reference may be registered twice.
    """

    def __init__(self, registrations: Iterable[Registration]) -> None:
        # Not a copy of a table: sentences about a connector are made from the same one.
        self._registrations = (
            registrations
            if isinstance(registrations, Registrations)
            else Registrations(registrations)
        )
        self._loaded: dict[str, Connector] = {}
        self._halves: dict[tuple[str, str], Any] = {}

    @property
    def kinds(self) -> tuple[str, ...]:
        """All kinds, sorted."""
        return self._registrations.kinds

    def get(self, kind: str) -> Connector:
        """Return the connector of a kind.

        Raises:
            ConnectorError: there is none, it is broken, or two packages claim the kind.
        """
        if kind not in self._loaded:
            self._loaded[kind] = load(self._registrations.of(kind))
        return self._loaded[kind]

    def package_of(self, kind: str) -> str:
        """Return the package that registers a kind, with its version; raises what `get` does."""
        return self._registrations.of(kind).package

    def of(self, source: Source[Any, Any]) -> Connector:
        """Return the connector that a source belongs to; raises what `get` does."""
        return self.get(source.kind)

    def half(self, kind: str, reference: Callable[[Connector], str], part: ConnectorPart) -> Any:
        """Return the part of a connector that `reference` names, made once.

        Raises:
            ConnectorError: there is no such connector, it has no such part, or it is broken.
        """
        named = reference(self.get(kind))
        if not named:
            raise ConnectorError(
                f"connector {kind!r} of {self.package_of(kind)} has no {part.name}: it cannot be"
                " used here"
            )
        if (kind, named) not in self._halves:
            self._halves[kind, named] = make(self._registrations.of(kind), named, part)
        return self._halves[kind, named]


@cache
def built_in() -> Connectors:
    """Return the connectors of this project, whatever else is installed."""
    return Connectors(built_in_registrations())


@cache
def installed() -> Connectors:
    """Return the connectors of this process's environment, looked up once."""
    return Connectors(registered())
