"""Calls a connector of another package such that its mistakes are sentences.

The operator, local mode and drivers work with what a connector returns long after they have called
it, where no traceback leads back to the connector.
"""

from collections.abc import Callable
from typing import Any

from balanced_source.api import (
    AsyncCall,
    CallCodec,
    Caller,
    CallExecutor,
    Connector,
    DriverOnly,
    Identity,
    NamedSecrets,
    SecretReader,
    Source,
)
from balanced_source_adapters.mistakes import expect, expect_texts, explained


def checked_connector(made: Connector) -> Connector:
    """Return the connector, such that what it raises or returns by mistake names it."""
    return _CheckedConnector(made)


class _CheckedConnector(Connector):
    """See the module. Every method raises a `ConnectorError` for a mistake."""

    def __init__(self, made: Connector) -> None:
        self._made = made

    @property
    def kind(self) -> str:
        return self._made.kind

    @property
    def operator(self) -> str:
        return self._reference("operator")

    @property
    def spark(self) -> str:
        return self._reference("spark")

    def executor(self, secrets: SecretReader, *, caller: Caller, client_id: str) -> CallExecutor:
        with explained(self.kind, "executor"):
            found = self._made.executor(secrets, caller=caller, client_id=client_id)
            expect(found, Callable, "a function that executes calls")  # type: ignore[arg-type]
            return found

    def identity_of(self, call: AsyncCall) -> Identity:
        with explained(self.kind, "identity_of"):
            found = self._made.identity_of(call)
            expect(found, (NamedSecrets, DriverOnly), "NamedSecrets or DriverOnly")
            return found

    @property
    def codec(self) -> CallCodec | None:
        with explained(self.kind, "codec"):
            found = self._made.codec
            expect(found, (CallCodec, type(None)), "a CallCodec, or None,")
            return found

    def server_of(self, call: AsyncCall) -> str:
        with explained(self.kind, "server_of"):
            found = self._made.server_of(call)
            expect(found, str, "the address of a server as a text")
            return found

    def secrets(self, source: Source[Any, Any]) -> tuple[str, ...]:
        return self._names("secrets", source)

    def needed_secrets(self, source: Source[Any, Any]) -> tuple[str, ...]:
        return self._names("needed_secrets", source)

    def _names(self, method: str, source: Source[Any, Any]) -> tuple[str, ...]:
        with explained(self.kind, method):
            found = getattr(self._made, method)(source)
            expect_texts(found, "a tuple with names of Secrets")
            return tuple(found)

    def _reference(self, name: str) -> str:
        with explained(self.kind, name):
            found = getattr(self._made, name)
            expect(found, str, "a text such as 'package.module:Class'")
            return str(found)
