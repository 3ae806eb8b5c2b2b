"""Which package registers the connector of which kind.

Nothing is loaded here: a sentence about a connector that fails names its package, and
`connectors`, which loads them, needs such sentences.

Tasks of Spark import this, so it imports little.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import takewhile
from typing import TYPE_CHECKING, Final, Self

from balanced_source.errors import ConnectorError
from balanced_source.names import shown
from balanced_source_adapters.entry_points import may_others_register
from balanced_source_adapters.suggestions import nearest

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

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
    def path(self) -> str:
        """The module that the connector is in, with dots."""
        return self.reference.partition(":")[0]

    @property
    def module(self) -> str:
        """The top-level module that the connector is in."""
        return self.path.partition(".")[0]

    @classmethod
    def of(cls, entry: "EntryPoint") -> Self:
        """Return the registration that an entry point is."""
        package = (
            f"{entry.dist.name} {entry.dist.version}"
            if entry.dist is not None
            else "an unknown package"
        )
        return cls(kind=entry.name, reference=entry.value, package=package)


class Registrations:
    """Registrations by kind.

    Args:
        found: of all kinds. The same reference may be registered twice.
    """

    def __init__(self, found: Iterable[Registration]) -> None:
        self._by_kind: dict[str, dict[str, Registration]] = {}
        for one in found:
            # An installed package registers the built-in connectors again: that is no conflict.
            self._by_kind.setdefault(one.kind, {}).setdefault(one.reference, one)

    def __iter__(self) -> Iterator[Registration]:
        return (found for several in self._by_kind.values() for found in several.values())

    @property
    def kinds(self) -> tuple[str, ...]:
        """All kinds, sorted."""
        return tuple(sorted(self._by_kind))

    def kind_of(self, module: str, *, preferred: str = "") -> str | None:
        """Return the kind that another package registers from where a module is.

        Several packages may share a top-level module, and one may register several kinds. The
        reference that is nearest to the module counts.

        Args:
            module: with dots.
            preferred: kind that counts if several are equally near.

        Returns:
            None if no other package registers anything there.
        """
        near = {one: _in_common(one.path, module) for one in self if one.module not in OURS}
        most = max(near.values(), default=0)
        kinds = [one.kind for one, count in near.items() if count == most > 0]
        return preferred if preferred in kinds else next(iter(kinds), None)

    def of(self, kind: str) -> Registration:
        """Return the registration of a kind.

        Raises:
            ConnectorError: there is none, or two packages claim the kind.
        """
        match list(self._by_kind.get(kind, {}).values()):
            case []:
                near = nearest(kind, self.kinds)
                hint = f"; did you mean {near}?" if near else "."
                raise ConnectorError(
                    f"no connector of kind {shown(kind)} is installed (there are:"
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


def _in_common(one: str, other: str) -> int:
    """Return how many modules two dotted paths have in common, from the first one on."""
    pairs = zip(one.split("."), other.split("."), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def built_in_registrations() -> list[Registration]:
    """Return those of this project, whatever else is installed."""
    return [
        Registration(kind=kind, reference=text, package="balanced-source")
        for kind, text in BUILT_IN.items()
    ]


@cache
def registered() -> Registrations:
    """Return those of this process's environment, looked up once."""
    if not may_others_register(GROUP, BUILT_IN):
        return Registrations(built_in_registrations())
    from importlib.metadata import entry_points

    found = map(Registration.of, entry_points(group=GROUP))
    return Registrations([*built_in_registrations(), *found])
