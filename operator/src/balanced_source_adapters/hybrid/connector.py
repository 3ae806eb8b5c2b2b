"""The hybrid source as a connector; see `Connector`.

Everything is done by the connectors of its parts.
"""

from collections.abc import Iterable
from typing import Any, Final

from balanced_source.api import (
    AsyncCall,
    CallCodec,
    Caller,
    CallExecutor,
    Connector,
    Identity,
    Json,
    NamedSecrets,
    SecretReader,
    Source,
)
from balanced_source.connectors.discovery import Alarm
from balanced_source.connectors.hybrid import KIND, HybridSource, PartCall
from balanced_source.errors import ContractViolationError
from balanced_source_adapters.connectors import installed


class HybridConnector(Connector):
    """Sources that are read in turn."""

    kind: Final = KIND
    operator: Final = "balanced_source_operator.hybrid.half:HybridOperatorHalf"
    spark: Final = "balanced_source_spark.hybrid.half:HybridSparkHalf"

    def executor(self, secrets: SecretReader, *, caller: Caller, client_id: str) -> CallExecutor:
        made: dict[str, CallExecutor] = {}

        def execute(call: AsyncCall) -> Any:
            known = _part_call(call)
            if isinstance(known.call, Alarm):
                return None
            if known.part not in made:
                part = installed().get(known.kind)
                made[known.part] = part.executor(secrets, caller=caller, client_id=client_id)
            return made[known.part](known.call)

        return execute

    def identity_of(self, call: AsyncCall) -> Identity:
        known = _part_call(call)
        if isinstance(known.call, Alarm):
            return NamedSecrets()
        return installed().get(known.kind).identity_of(known.call)

    def server_of(self, call: AsyncCall) -> str:
        known = _part_call(call)
        return (
            ""
            if isinstance(known.call, Alarm)
            else installed().get(known.kind).server_of(known.call)
        )

    @property
    def codec(self) -> CallCodec:
        return HybridCodec()

    def secrets(self, source: Source[Any, Any]) -> tuple[str, ...]:
        parts = _hybrid(source).parts
        return _merged(installed().of(part.source).secrets(part.source) for part in parts)

    def needed_secrets(self, source: Source[Any, Any]) -> tuple[str, ...]:
        parts = _hybrid(source).parts
        return _merged(installed().of(part.source).needed_secrets(part.source) for part in parts)


class HybridCodec(CallCodec):
    """Writes calls of parts for a driver."""

    def call_to_json(self, call: AsyncCall) -> Json:
        known = _part_call(call)
        written = _codec(known).call_to_json(known.call)
        return {"part": known.part, "kind": known.kind, "handler": known.handler, "call": written}

    def call_from_json(self, data: Json) -> PartCall:
        kind = str(data["kind"])
        codec = installed().get(kind).codec
        if codec is None:
            raise ContractViolationError(f"connector {kind!r} has no calls for a driver")
        call = codec.call_from_json(data["call"])
        return PartCall(str(data["part"]), kind, str(data["handler"]), call)

    def result_to_json(self, call: AsyncCall, result: Any) -> Json:
        known = _part_call(call)
        return _codec(known).result_to_json(known.call, result)

    def result_from_json(self, call: AsyncCall, data: Json) -> Any:
        known = _part_call(call)
        return _codec(known).result_from_json(known.call, data)


def _codec(call: PartCall) -> CallCodec:
    codec = installed().get(call.kind).codec
    if codec is None:
        raise ContractViolationError(
            f"connector {call.kind!r} does not let a driver make its calls"
        )
    return codec


def _part_call(call: AsyncCall) -> PartCall:
    if not isinstance(call, PartCall):
        raise ContractViolationError(f"a {type(call).__name__} is not a call of a part")
    return call


def _hybrid(source: Source[Any, Any]) -> HybridSource:
    if not isinstance(source, HybridSource):
        raise ContractViolationError(f"{type(source).__name__} is not a hybrid source")
    return source


def _merged(names: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(sorted({name for part in names for name in part}))
