"""Kinesis as a connector; see `Connector`.

With a Secret, the operator lists shards; without one, the driver does, with the identity of its pod
or its environment.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from balanced_source.api import (
    AsyncCall,
    CallCodec,
    Caller,
    CallExecutor,
    Connector,
    DriverOnly,
    Identity,
    Json,
    NamedSecrets,
    SecretReader,
    Source,
    SplitId,
)
from balanced_source.api.enumerator import split_to_json
from balanced_source.connectors.discovery import Alarm
from balanced_source.connectors.kinesis import (
    KIND,
    DiscoveredShards,
    FirstPositions,
    KinesisSource,
    ListShards,
    Server,
    Shard,
    Start,
    StartAt,
    discovered,
    first_splits,
    split_of,
)
from balanced_source.errors import (
    ContractViolationError,
    RefusedDiscoveryError,
    TransientDiscoveryError,
)
from balanced_source.reasons import Reason

if TYPE_CHECKING:
    from balanced_source_adapters.kinesis.client import KinesisClient


class KinesisConnector(Connector):
    """Streams of Kinesis."""

    kind: Final = KIND
    operator: Final = "balanced_source_operator.kinesis.half:KinesisOperatorHalf"
    spark: Final = "balanced_source_spark.kinesis.half:KinesisSparkHalf"

    def executor(self, secrets: SecretReader, *, caller: Caller, client_id: str) -> CallExecutor:
        clients: dict[Server, KinesisClient] = {}

        def client_of(server: Server) -> "KinesisClient":
            from balanced_source_adapters.kinesis.client import KinesisClient

            if caller is Caller.OPERATOR and server.secret is None:
                raise ContractViolationError("without a Secret, only the driver may ask Kinesis")
            if server not in clients:
                clients[server] = KinesisClient(server, secrets, client_id=client_id)
            return clients[server]

        def execute(call: AsyncCall) -> Any:
            match call:
                case ListShards(scope=stream, server=server):
                    return _listed(client_of(server), stream)
                case FirstPositions(scope=stream, server=server):
                    summary = client_of(server).summary(stream)
                    _check_start(call, summary.now)
                    return first_splits(
                        call,
                        created=summary.created,
                        now=summary.now,
                        retention=summary.retention,
                    )
                case Alarm():
                    return None
                case _:
                    raise ContractViolationError(
                        f"the connector {KIND} cannot execute a {type(call).__name__}"
                    )

        return execute

    def identity_of(self, call: AsyncCall) -> Identity:
        if not isinstance(call, ListShards | FirstPositions):
            return NamedSecrets()
        return DriverOnly() if call.server.secret is None else NamedSecrets((call.server.secret,))

    @property
    def codec(self) -> CallCodec:
        return KinesisCodec()

    def server_of(self, call: AsyncCall) -> str:
        if not isinstance(call, ListShards | FirstPositions):
            return ""
        return call.server.endpoint or f"{KIND} {call.server.region}"

    def secrets(self, source: Source[Any, Any]) -> tuple[str, ...]:
        return (
            (source.server.secret,)
            if isinstance(source, KinesisSource) and source.server.secret
            else ()
        )


def _listed(client: "KinesisClient", stream: str) -> DiscoveredShards:
    """Return the shards of a stream together with its identity.

    The service tells them in two answers. Shards of a stream that was deleted in between must not
    get the identity of the new one: positions of the one would be used in the other.

    Raises:
        TransientDiscoveryError: the stream was recreated while it was listed.
        DiscoveryError: the service does not answer, or refuses to.
    """
    created = client.summary(stream).created
    shards = client.shards(stream)
    if client.summary(stream).created != created:
        raise TransientDiscoveryError(
            f"stream {stream} was recreated while its shards were listed; they are listed again",
            scope=stream,
        )
    return discovered(shards, created=created)


def _check_start(call: FirstPositions, now: int) -> None:
    """Check that reading does not start in the future, which the service refuses.

    Raises:
        RefusedDiscoveryError: it does.
    """
    if call.start.at is StartAt.AT_TIMESTAMP and (call.start.time or 0) >= now + 1000:
        raise RefusedDiscoveryError(
            f"stream {call.scope} is to be read from a time in the future: set a time that has"
            " passed, or LATEST",
            scope=call.scope,
            reason=Reason.POSITION_OUT_OF_RANGE,
        )


class KinesisCodec(CallCodec):
    """Writes calls for a driver."""

    def call_to_json(self, call: AsyncCall) -> Json:
        match call:
            case ListShards(scope=scope, round=number, server=server):
                return {"scope": scope, "round": number, "server": server.to_json()}
            case FirstPositions(scope=scope, split_ids=split_ids, server=server, start=start):
                ids = [list(split_id) for split_id in split_ids]
                return {
                    "scope": scope,
                    "splitIds": ids,
                    "server": server.to_json(),
                    "start": start.to_json(),
                    **({"isOverdue": True} if call.is_overdue else {}),
                }
            case _:
                raise ContractViolationError(f"a {type(call).__name__} is not a call of {KIND}")

    def call_from_json(self, data: Json) -> AsyncCall:
        scope, server = str(data["scope"]), Server.from_json(data["server"])
        if "start" not in data:
            return ListShards(scope=scope, round=int(data["round"]), server=server)
        ids = tuple((str(stream), str(shard)) for stream, shard in data["splitIds"])
        return FirstPositions(
            scope=scope,
            split_ids=ids,
            server=server,
            start=Start.from_json(data["start"]),
            is_overdue=bool(data.get("isOverdue", False)),
        )

    def result_to_json(self, call: AsyncCall, result: Any) -> Json:
        if isinstance(call, ListShards):
            return _listed_to_json(result)
        return [split_to_json(split) for split in result]

    def result_from_json(self, call: AsyncCall, data: Json) -> Any:
        if isinstance(call, ListShards):
            return _listed_from_json(call.scope, data)
        return [
            split_of(tuple(split_id), int(position), dict(known))
            for split_id, position, known in data
        ]


def _listed_to_json(result: DiscoveredShards) -> Json:
    shards = {
        str(s[1]): [[str(p[1]) for p in shard.parents], shard.is_open]
        for s, shard in result.shards.items()
    }
    return {"shards": shards, "created": next(iter(result.identities.values()), None)}


def _listed_from_json(stream: str, data: Mapping[str, Any]) -> Any:
    shards: dict[SplitId, Shard] = {
        (stream, str(shard)): Shard(tuple((stream, str(p)) for p in parents), bool(is_open))
        for shard, (parents, is_open) in data["shards"].items()
    }
    created = data["created"]
    return discovered(shards, created=None if created is None else str(created))
