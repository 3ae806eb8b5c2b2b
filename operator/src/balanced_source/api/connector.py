"""One kind of source, as everything generic sees it.

A connector has a pure half (FLIP-27's `Source`, whose enumerator makes calls as values) and an I/O
half, which executes these calls. A `Connector` joins them. It is found by the name of its kind, in
the entry points of installed packages; built-in connectors are found the same way.

It must be cheap to import: clients are imported by `Connector.executor`, where they are needed.
"""

import enum
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol, TypeAlias

from balanced_source.api.context import AsyncCall
from balanced_source.api.enumerator import Source
from balanced_source.api.splits import Json

CONTRACT: Final = 1
"""Version of the contract of connectors in this release: all that a plug-in implements or calls. A
change that a connector of an older version could not live with makes a new one."""

OLDEST_CONTRACT: Final = 1
"""The oldest version whose connectors this release runs."""

CallExecutor: TypeAlias = Callable[[AsyncCall], Any]
"""Executes a call; blocking. Raises what the call's completion handler sees as a failure."""


class Caller(enum.Enum):
    """Whose process executes the calls of an enumerator.

    OPERATOR: the operator's, which serves sources of many owners. Calls use only what the source
        itself names: never files of that process, its environment, its network identity or a role
        of its pod.
    OWNER: one that belongs to the owner of the source, such as a driver or local mode. Calls may
        use what it has.
    """

    OPERATOR = "Operator"
    OWNER = "Owner"


@dataclass(frozen=True, slots=True)
class NamedSecrets:
    """A call that uses these Secrets of its source's namespace and nothing else.

    Without names it is anonymous.

    The operator executes it, and so does every process of the source's owner.
    """

    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DriverOnly:
    """A call that uses what only a process of the source's owner has.

    Local paths, mounted volumes, a cloud role.

    The operator never executes it. It asks a driver of the source, if the connector has a
    `Connector.codec`.
    """


Identity: TypeAlias = NamedSecrets | DriverOnly
"""Whose identity a call of an enumerator needs."""


class SecretReader(Protocol):
    """Resolves the Secrets that a source names."""

    def read(self, name: str) -> Mapping[str, str]:
        """Return the keys of a Secret with their values. Values that are not text are left out.

        Raises:
            LookupError: there is no such Secret, or it may not be read.
        """
        ...


class CallCodec(ABC):
    """Writes calls and their results as JSON, so that a driver can make calls for the operator.

    Stateless.

    Nothing secret may be in either: both travel in documents. The operator does not trust a result
    more than any other input of the source's owner: reading one must fail on everything that is not
    what `result_to_json` writes.
    """

    @abstractmethod
    def call_to_json(self, call: AsyncCall) -> Json:
        """Return a call whose identity is `DriverOnly` as JSON."""

    @abstractmethod
    def call_from_json(self, data: Json) -> AsyncCall:
        """Inverse of `call_to_json`; any error means that the driver cannot make the call."""

    @abstractmethod
    def result_to_json(self, call: AsyncCall, result: Any) -> Json:
        """Return what the executor returned for a call as JSON."""

    @abstractmethod
    def result_from_json(self, call: AsyncCall, data: Json) -> Any:
        """Inverse of `result_to_json`; any error counts as a failure of the call."""


class Connector(ABC):
    """What the product asks of one kind of source.

    Stateless; one instance serves all sources of its kind.
    """

    contract: ClassVar[int] = 1
    """Version of the contract of connectors that it is written for: write the number, not
    `CONTRACT`, which is that of the installed release. A release refuses connectors of versions
    that it does not support."""

    @property
    @abstractmethod
    def kind(self) -> str:
        """Name of the kind, as for the entry point and in `Source.kind` of its sources."""

    @property
    def operator(self) -> str:
        """``module:attribute`` of the operator half, see `balanced_source_operator.contract.half`.

        Empty if it has none. It is loaded where specs are read: by the operator, by local mode and
        by the dry run.
        """
        return ""

    @property
    def spark(self) -> str:
        """``module:attribute`` of the Spark half, see `balanced_source_spark.contract.half`.

        Empty if it has none. It is loaded by the processes of ``format("balanced")``.
        """
        return ""

    @abstractmethod
    def executor(self, secrets: SecretReader, *, caller: Caller, client_id: str) -> CallExecutor:
        """Return what executes the calls of one source's enumerator.

        Args:
            secrets: resolves Secrets. Those that `identity_of` names for a call are loaded when the
                call is executed.
            caller: whose process it runs in. For `Caller.OPERATOR` it must refuse everything that
                would lend the source the operator's identity, also if a Secret asks for it.
            client_id: what servers see of the client.
        """

    @abstractmethod
    def identity_of(self, call: AsyncCall) -> Identity:
        """Return whose identity a call needs.

        There is no default: none could be right for every connector.
        """

    @property
    def codec(self) -> CallCodec | None:
        """Writes calls that only a driver can make.

        None: there are none, or the operator refuses them.
        """
        return None

    def server_of(self, call: AsyncCall) -> str:
        """Return the address of the server that answers a call; empty if it is unknown.

        While a server is slow, calls of all sources to it are kept apart from the others.
        """
        return ""

    def secrets(self, source: Source[Any, Any]) -> tuple[str, ...]:
        """Return the names of the Secrets that readers of the source mount, sorted."""
        return ()

    def needed_secrets(self, source: Source[Any, Any]) -> tuple[str, ...]:
        """Return those of `secrets` without which a part of the source cannot be read, sorted."""
        return self.secrets(source)
