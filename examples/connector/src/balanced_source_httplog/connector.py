"""The entry point: what the product asks of this kind of source.

It imports no client until a call is executed.
"""

from typing import Any, Final

from balanced_source.api import (
    AsyncCall,
    Caller,
    CallExecutor,
    Connector,
    Identity,
    NamedSecrets,
    SecretReader,
    Source,
)
from balanced_source.connectors.discovery import Discovered
from balanced_source_httplog.source import (
    KIND,
    SCOPE,
    FirstEntries,
    HttpLogSource,
    ListLogs,
    LogSplit,
)


class HttpLogConnector(Connector):
    """Logs behind an HTTP API."""

    kind: Final = KIND
    contract = 1
    operator: Final = "balanced_source_httplog.operator_half:HttpLogOperatorHalf"
    spark: Final = "balanced_source_httplog.spark_half:HttpLogSparkHalf"

    def executor(self, secrets: SecretReader, *, caller: Caller, client_id: str) -> CallExecutor:
        """The client lends nothing of its process, so both callers are served alike."""

        def execute(call: AsyncCall) -> Any:
            match call:
                case ListLogs(server=server):
                    from balanced_source_httplog.client import LogClient

                    names = LogClient(server, secrets, client_id=client_id).names()
                    return Discovered(split_ids=frozenset((SCOPE, name) for name in names))
                case FirstEntries(split_ids=split_ids):
                    return [LogSplit(name=str(name)) for _, name in split_ids]
                case _:
                    raise TypeError(f"{KIND} cannot execute a {type(call).__name__}")

        return execute

    def identity_of(self, call: AsyncCall) -> Identity:
        return NamedSecrets(_named(call.server.secret) if isinstance(call, ListLogs) else ())

    def secrets(self, source: Source[Any, Any]) -> tuple[str, ...]:
        return _named(source.server.secret) if isinstance(source, HttpLogSource) else ()


def _named(secret: str | None) -> tuple[str, ...]:
    return (secret,) if secret else ()
