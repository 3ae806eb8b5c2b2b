"""The connectors that are installed.

Found by the entry points of packages, loaded when a source needs them.
"""

import importlib.metadata
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Self

from balanced_source.api import CONTRACT, OLDEST_CONTRACT, Connector, Source
from balanced_source.errors import ConnectorError, in_short
from balanced_source.names import shown, shown_value
from balanced_source_adapters.checked_connector import checked_connector
from balanced_source_adapters.suggestions import nearest

GROUP: Final = "balanced_source.connectors"
"""Group of the entry points.

The name of one is the kind; its object is a subclass of `Connector`.
"""

BUILT_IN: Final[Mapping[str, str]] = {
    "files": "balanced_source_adapters.files.connector:FilesConnector",
    "hybrid": "balanced_source_adapters.hybrid.connector:HybridConnector",
    "kafka": "balanced_source_adapters.kafka.connector:KafkaConnector",
    "kinesis": "balanced_source_adapters.kinesis.connector:KinesisConnector",
}
"""The entry points of this project, for where it runs without being installed: from a folder on
PYTHONPATH."""


OURS: Final = frozenset(
    {
        "balanced_source",
        "balanced_source_adapters",
        "balanced_source_operator",
        "balanced_source_spark",
    }
)
"""Top-level modules of this project."""


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


CONNECTOR: Final = ConnectorPart(name="entry point", base=Connector, derived="Connector")


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """One entry point.

    Attributes:
        kind: its name.
        reference: ``module:attribute`` of the connector's class.
        package: who registers it, with its version, for messages.
    """

    kind: str
    reference: str
    package: str

    @property
    def module(self) -> str:
        """The top-level module that the connector is in."""
        return self.reference.partition(":")[0].partition(".")[0]

    @classmethod
    def of(cls, entry: importlib.metadata.EntryPoint) -> Self:
        """Return the registration that an entry point is."""
        package = (
            f"{entry.dist.name} {entry.dist.version}"
            if entry.dist is not None
            else "an unknown package"
        )
        return cls(kind=entry.name, reference=entry.value, package=package)

    def load(self) -> Connector:
        """Return the connector.

        Raises:
            ConnectorError: its package is broken, or does not keep the contract. Names the package.
        """
        made: Connector = self.make(self.reference, CONNECTOR)
        # States and checkpoints name the kind: a class under another name could not read its own.
        if made.kind != self.kind:
            raise self._broken(f"{self.reference} says that its kind is {made.kind!r}")
        self._check_contract(made.contract)
        return made if self.module in OURS else checked_connector(made)

    def make(self, reference: str, part: ConnectorPart) -> Any:
        """Return an instance of the class that ``module:attribute`` names.

        Raises:
            ConnectorError: it cannot be loaded, or is not what `part` says. Names the package.
        """
        found = importlib.metadata.EntryPoint.pattern.match(reference)
        if found is None or not found["attr"]:
            raise self._broken(
                f"its {part.name} is {shown(reference)}, and module:Class was expected"
            )
        entry = importlib.metadata.EntryPoint(self.kind, reference, GROUP)
        try:
            made = entry.load()()
        # A module that ends the process must not end it for the sources of other connectors.
        except (Exception, SystemExit) as error:
            raise self._unloadable(reference, error) from error
        if not isinstance(made, part.base):
            raise self._broken(f"{reference} is not a class derived from {part.derived}")
        return made

    def _check_contract(self, version: object) -> None:
        """Refuse a connector whose contract this release does not keep."""
        if type(version) is not int:
            raise self._broken(
                f"its contract is {shown_value(version)}, and a whole number was expected"
            )
        if version > CONTRACT:
            raise ConnectorError(
                f"connector {self.kind!r} of {self.package} is written for version {version} of the"
                f" contract of connectors, and this release has version {CONTRACT}: upgrade"
                " balanced-source, or install an older release of the package"
            )
        if version < OLDEST_CONTRACT:
            raise ConnectorError(
                f"connector {self.kind!r} of {self.package} is written for version {version} of the"
                f" contract of connectors, and this release supports versions from"
                f" {OLDEST_CONTRACT} on: install a newer release of the package"
            )

    def _unloadable(self, reference: str, error: BaseException) -> ConnectorError:
        missing = error.name if isinstance(error, ModuleNotFoundError) and error.name else ""
        root = missing.partition(".")[0]
        # A part of this project that is missing is another release; the whole is not installed.
        if not missing or (root in OURS and root != missing):
            return self._broken(f"{reference} cannot be loaded: {in_short(error)}")
        if root == self.module:
            return ConnectorError(
                f"connector {self.kind!r} of {self.package} is broken: its module {missing!r} is"
                " missing. Install the package again"
            )
        return ConnectorError(
            f"connector {self.kind!r} of {self.package} cannot be loaded: {reference} needs module"
            f" {missing!r}, which is not installed for {sys.executable}. Install it there; under"
            " the operator, add it to the image"
        )

    def _broken(self, what: str) -> ConnectorError:
        return ConnectorError(
            f"connector {self.kind!r} of {self.package} is broken: {what}. Install a release that"
            " fits this one, or report this to the authors of the package"
        )


class Connectors:
    """Connectors by kind, each loaded once. A broken one fails only who asks for it.

    Args:
        registrations: of all kinds. The same reference may be registered twice.
    """

    def __init__(self, registrations: Iterable[Registration]) -> None:
        self._registered: dict[str, dict[str, Registration]] = {}
        for found in registrations:
            # An installed package registers the built-in connectors again: that is no conflict.
            self._registered.setdefault(found.kind, {}).setdefault(found.reference, found)
        self._loaded: dict[str, Connector] = {}
        self._halves: dict[tuple[str, str], Any] = {}

    @property
    def kinds(self) -> tuple[str, ...]:
        """All kinds, sorted."""
        return tuple(sorted(self._registered))

    @property
    def kinds_by_module(self) -> Mapping[str, str]:
        """Top-level module → the kind that another package registers from there."""
        return {
            found.module: kind
            for kind, several in self._registered.items()
            for found in several.values()
            if found.module not in OURS
        }

    def get(self, kind: str) -> Connector:
        """Return the connector of a kind.

        Raises:
            ConnectorError: there is none, it is broken, or two packages claim the kind.
        """
        if kind not in self._loaded:
            self._loaded[kind] = self._registration(kind).load()
        return self._loaded[kind]

    def package_of(self, kind: str) -> str:
        """Return the package that registers a kind, with its version; raises what `get` does."""
        return self._registration(kind).package

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
            self._halves[kind, named] = self._registration(kind).make(named, part)
        return self._halves[kind, named]

    def _registration(self, kind: str) -> Registration:
        match list(self._registered.get(kind, {}).values()):
            case []:
                near = nearest(kind, self.kinds)
                hint = f"; did you mean {near}?" if near else "."
                raise ConnectorError(
                    f"no connector of kind {kind!r} is installed (there are:"
                    f" {', '.join(self.kinds)}){hint} A connector of another package must be"
                    " installed for the Python of Spark's driver and executors; under the operator,"
                    " add the package to the images of operator and driver"
                )
            case [only]:
                return only
            case several:
                packages = " and ".join(f"{found.package} ({found.reference})" for found in several)
                raise ConnectorError(
                    f"connector {kind!r} is registered by {packages}: remove all packages but one"
                )


@cache
def built_in() -> Connectors:
    """Return the connectors of this project, whatever else is installed."""
    return Connectors(_built_in())


def _built_in() -> list[Registration]:
    return [
        Registration(kind=kind, reference=text, package="balanced-source")
        for kind, text in BUILT_IN.items()
    ]


@cache
def installed() -> Connectors:
    """Return the connectors of this process's environment, looked up once."""
    return Connectors(
        [*_built_in(), *map(Registration.of, importlib.metadata.entry_points(group=GROUP))]
    )
