"""The client of Kinesis. Errors of the service become errors of discovery, in words.

With a Secret it uses the Secret's credentials and nothing else of its process: no profile, no
environment, no proxy, no role of the machine. Without one it uses the standard chain, which only a
process of the owner may do.
"""

import datetime as dt
import threading
from collections.abc import Callable, Iterator, Mapping
from email.utils import parsedate_to_datetime
from functools import partial
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeVar

from balanced_source.api import SecretReader, SplitId
from balanced_source.connectors.kinesis import Server, Shard, ShardSplit, is_arn, name_of
from balanced_source.errors import DiscoveryError, RefusedDiscoveryError, TransientDiscoveryError
from balanced_source.reasons import Reason

T = TypeVar("T")

ACCESS_KEY: Final = "accessKeyId"
SECRET_KEY: Final = "secretAccessKey"  # noqa: S105 - the name of a key
TOKEN: Final = "sessionToken"  # noqa: S105 - the name of a key

_HOUR: Final = 3_600_000
"""Milliseconds."""

TIMEOUT: Final = 10
"""Seconds until a request that has no answer fails."""

_THROTTLED: Final = frozenset(
    {
        "ProvisionedThroughputExceededException",
        "LimitExceededException",
        "KMSThrottlingException",
        "ThrottlingException",
        "Throttling",
        "RequestLimitExceeded",
    }
)
_REFUSED: Final = frozenset(
    {
        "AccessDeniedException",
        "IncompleteSignature",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "KMSAccessDeniedException",
        "KMSDisabledException",
        "KMSInvalidStateException",
        "KMSNotFoundException",
        "MissingAuthenticationTokenException",
        "NotAuthorized",
        "OptInRequired",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)
_INVALID: Final = frozenset({"ValidationException", "ValidationError"})
"""The request itself is wrong, and its credentials are not."""

_SKEWED: Final = ("Signature expired", "Signature not yet current")
"""What the service says where the time of a request is more than five minutes off."""

_INVALID_ARGUMENT: Final = frozenset({"InvalidArgumentException"})
"""A position that the shard does not have, where one was asked for."""

_EXPIRED: Final = frozenset({"ExpiredToken", "ExpiredTokenException"})


class ThrottledError(TransientDiscoveryError):
    """The service answers nothing now because it was asked too often."""


class IteratorExpiredError(TransientDiscoveryError):
    """A shard iterator is older than five minutes: get another one."""


class ExpiredCredentialsError(RefusedDiscoveryError):
    """The session token has expired, and may be renewed soon."""


class NotFoundError(RefusedDiscoveryError):
    """There is no such stream or shard."""


class BadPositionError(RefusedDiscoveryError):
    """The shard has no such sequence number."""


class Record(NamedTuple):
    """A record of a shard.

    Attributes:
        stream: as the user names it.
        shard: id.
        sequence: number.
        key: partition key.
        data: the bytes.
        arrived: approximate time of arrival, in microseconds since the epoch.
    """

    stream: str
    shard: str
    sequence: int
    key: str
    data: bytes
    arrived: int


class Batch(NamedTuple):
    """Answer of one ``GetRecords``.

    Attributes:
        records: in their order; may be none although there are more.
        iterator: to continue with; None at the end of a closed shard.
        behind: how far these records are behind the newest, in milliseconds; 0 if there are no more
            now; None: unknown.
        now: time of the server, in milliseconds since the epoch; None: unknown.
    """

    records: tuple[Record, ...]
    iterator: str | None
    behind: int | None
    now: int | None = None


class Summary(NamedTuple):
    """What the service says of a stream.

    Attributes:
        created: tells the stream from a former one of its name.
        now: time of the server, in milliseconds since the epoch.
        retention: milliseconds for which it keeps a record; None: unknown.
    """

    created: str
    now: int
    retention: int | None = None


class KinesisClient:
    """Asks one server. Threads may share it.

    Args:
        server: how it is reached.
        secrets: holds the credentials.
        client_id: sent as a part of the name of the program.
        arns: name of a stream → the ARN by which it is asked for.
    """

    def __init__(
        self,
        server: Server,
        secrets: SecretReader,
        *,
        client_id: str,
        arns: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._server, self._secrets, self._client_id = server, secrets, client_id
        self._arns = arns
        self._clients: dict[str, Any] = {}
        self._known: tuple[tuple[str, str], ...] | None = None
        self._lock = threading.Lock()

    def summary(self, stream: str) -> Summary:
        """Return the identity of a stream.

        Raises:
            DiscoveryError: the service does not answer, or refuses to.
        """
        answer = self._call(
            stream, lambda client: client.describe_stream_summary(**self._named(stream))
        )
        known = answer["StreamDescriptionSummary"]
        hours = known.get("RetentionPeriodHours")
        return Summary(
            created=str(_millis(known["StreamCreationTimestamp"])),
            now=_server_time(answer),
            retention=None if hours is None else int(hours) * _HOUR,
        )

    def shards(self, stream: str) -> dict[SplitId, Shard]:
        """Return all shards of a stream that are retained, with their parents.

        Raises:
            DiscoveryError: the service does not answer, or refuses to.
        """
        return {(stream, shard["ShardId"]): _shard(stream, shard) for shard in self._listed(stream)}

    def iterator(self, split: ShardSplit) -> str:
        """Return an iterator at the position of a split.

        Behind a record, it begins with that record once more.

        Raises:
            NotFoundError: there is no such stream, or the shard is not retained any more.
            BadPositionError: the shard does not have that record.
            DiscoveryError: the service does not answer, or refuses to.
        """
        place = {**self._named(split.stream), "ShardId": split.shard, **_position(split)}
        answer = self._call(
            split.stream, lambda client: client.get_shard_iterator(**place), has_position=True
        )
        return str(answer["ShardIterator"])

    def records(self, stream: str, shard: str, iterator: str, limit: int) -> Batch:
        """Return the next records.

        Raises:
            ThrottledError: the shard was asked too often.
            IteratorExpiredError: get another iterator.
            DiscoveryError: the service does not answer, or refuses to.
        """
        answer = self._call(
            stream,
            lambda client: client.get_records(ShardIterator=iterator, Limit=limit),
            has_position=True,
        )
        found = tuple(_record(stream, shard, record) for record in answer["Records"])
        return Batch(
            found,
            answer.get("NextShardIterator"),
            answer.get("MillisBehindLatest"),
            _date(answer),
        )

    def _listed(self, stream: str) -> Iterator[Mapping[str, Any]]:
        question: dict[str, Any] = self._named(stream)
        while True:
            answer = self._call(stream, partial(_list_shards, question))
            yield from answer["Shards"]
            if not answer.get("NextToken"):
                return
            # The service refuses the name of the stream beside a token.
            question = {"NextToken": answer["NextToken"]}

    def _call(self, stream: str, ask: Callable[[Any], T], *, has_position: bool = False) -> T:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            return ask(self._client(stream))
        except ClientError as error:
            answer = error.response.get("Error", {})
            if has_position and (wrong := self._wrong_position(stream, answer)) is not None:
                raise wrong from error
            raise self._refusal(stream, answer) from error
        except BotoCoreError as error:
            raise self._failure(stream, error) from error

    def _client(self, stream: str) -> Any:
        """Return the client for a stream; a new one when the Secret has changed."""
        credentials = self._credentials(stream)
        known = None if credentials is None else tuple(sorted(credentials.items()))
        region = self._region(stream)
        # A client takes a tenth of a second of the processor: threads that begin together would
        # each make one.
        with self._lock:
            # A rotated Secret: connections of the former credentials are not used again.
            if known != self._known:
                self._clients, self._known = {}, known
            if region not in self._clients:
                self._clients[region] = _client(self._server, region, credentials, self._client_id)
            return self._clients[region]

    def _region(self, stream: str) -> str:
        known = self._arns.get(stream, stream)
        return self._server.region or (known.split(":")[3] if is_arn(known) else "")

    def _named(self, stream: str) -> dict[str, Any]:
        known = self._arns.get(stream, stream)
        return {"StreamARN": known} if is_arn(known) else {"StreamName": known}

    def _credentials(self, stream: str) -> Mapping[str, str] | None:
        if (name := self._server.secret) is None:
            return None
        try:
            found = self._secrets.read(name)
        except LookupError as error:
            raise RefusedDiscoveryError(
                str(error), scope=stream, reason=Reason.SECRET_NOT_FOUND
            ) from error
        if missing := [key for key in (ACCESS_KEY, SECRET_KEY) if not found.get(key)]:
            raise RefusedDiscoveryError(
                f"Secret {name} lacks the key {' and '.join(missing)}: add it",
                scope=stream,
                reason=Reason.SECRET_NOT_FOUND,
            )
        return {key: found[key] for key in (ACCESS_KEY, SECRET_KEY, TOKEN) if found.get(key)}

    def _wrong_position(self, stream: str, answer: Mapping[str, Any]) -> "BadPositionError | None":
        """Return the error of a question for a position, if it is the position that is wrong."""
        code, text = str(answer.get("Code", "")), str(answer.get("Message", ""))
        # A stream may be called after a sequence number, or have a stamp in its name.
        words = text.replace(name_of(stream), "")
        if code not in _INVALID_ARGUMENT and not _is_position(code, words):
            return None
        advice = (
            "correct startingPosition"
            if "tamp" in words
            else "the shard has no such sequence number"
        )
        return BadPositionError(
            f"{self._where(stream)} answers {code} ({text}): {advice}",
            scope=stream,
            reason=Reason.POSITION_OUT_OF_RANGE,
        )

    def _refusal(self, stream: str, answer: Mapping[str, Any]) -> DiscoveryError:
        code, text = str(answer.get("Code", "")), str(answer.get("Message", ""))
        where = self._where(stream)
        if code in _THROTTLED:
            return ThrottledError(f"{where} answers {code}: it was asked too often", scope=stream)
        if code == "ExpiredIteratorException":
            return IteratorExpiredError(f"{where}: the iterator has expired", scope=stream)
        if code == "ResourceNotFoundException":
            advice = "create it, or correct its name, its region or the account of the credentials"
            return NotFoundError(
                f"{where} was not found ({text}): {advice}",
                scope=stream,
                reason=Reason.NOT_FOUND,
                is_hopeless=True,
            )
        if code in _EXPIRED:
            return ExpiredCredentialsError(
                f"{where} answers {code}: the session token in {self._who()} has expired: renew it",
                scope=stream,
                reason=Reason.AUTHENTICATION_FAILED,
            )
        if code in _REFUSED:
            advice = f"correct the credentials in {self._who()}, or their rights"
            if "Signature" in code and any(words in text for words in _SKEWED):
                advice = "the clock of this machine differs too much from the service's: set it"
            reason = (
                Reason.NOT_AUTHORIZED
                if "Denied" in code or code == "NotAuthorized"
                else Reason.AUTHENTICATION_FAILED
            )
            return RefusedDiscoveryError(
                f"{where} answers {code}: {advice}", scope=stream, reason=reason
            )
        if code in _INVALID | _INVALID_ARGUMENT:
            return RefusedDiscoveryError(
                f"{where} answers {code} ({text}): correct the name of the stream, its region or"
                " startingPosition",
                scope=stream,
                reason=Reason.INVALID_PROPERTIES,
            )
        return TransientDiscoveryError(
            f"{where} answers {code or 'an error'} ({text})", scope=stream
        )

    def _failure(self, stream: str, error: Exception) -> DiscoveryError:
        from botocore import exceptions

        where = self._where(stream)
        if isinstance(error, exceptions.NoCredentialsError | exceptions.PartialCredentialsError):
            text = (
                f"{where}: no credentials in {self._who()}; name a Secret, or give this process a"
                " role"
            )
            return RefusedDiscoveryError(text, scope=stream, reason=Reason.AUTHENTICATION_FAILED)
        if isinstance(error, exceptions.NoRegionError):
            text = f"stream {stream}: the region is unknown. Set the region, or use an ARN"
            return RefusedDiscoveryError(text, scope=stream, reason=Reason.INVALID_PROPERTIES)
        advice = ""
        if isinstance(error, exceptions.EndpointConnectionError):
            advice = ". Check the region, the endpoint and the network"
        return TransientDiscoveryError(f"{where} does not answer: {error}{advice}", scope=stream)

    def _where(self, stream: str) -> str:
        region, endpoint = self._region(stream), self._server.endpoint
        in_region = f" in region {region}" if region else ""
        return f"stream {stream}{in_region}{f' at {endpoint}' if endpoint else ''}"

    def _who(self) -> str:
        secret = self._server.secret
        return f"Secret {secret}" if secret else "the standard chain (environment, profile, role)"


def _client(
    server: Server, region: str, credentials: Mapping[str, str] | None, client_id: str
) -> Any:
    import botocore.session
    from botocore.config import Config

    session = botocore.session.Session()
    own: dict[str, Any] = {}
    if credentials is not None:
        # Nothing of this process: its profile and its endpoints belong to someone else.
        session.set_config_variable("profile", None)
        session.set_config_variable("ignore_configured_endpoint_urls", value=True)
        session.set_credentials(
            credentials[ACCESS_KEY], credentials[SECRET_KEY], credentials.get(TOKEN)
        )
        own["proxies"] = {}
    config = Config(
        user_agent_extra=f"balanced-source/{client_id}",
        connect_timeout=TIMEOUT,
        read_timeout=TIMEOUT,
        # Pauses are those of the shard, see SharedShards: botocore would wait in the middle of a
        # fetch.
        retries={"total_max_attempts": 1},
        max_pool_connections=64,
        **own,
    )
    return session.create_client(
        "kinesis", region_name=region or None, endpoint_url=server.endpoint or None, config=config
    )


def _is_position(code: str, text: str) -> bool:
    """Whether it is the sequence number that was not found. AWS calls that an invalid argument."""
    return code == "ResourceNotFoundException" and "SequenceNumber" in text


def _list_shards(question: Mapping[str, Any], client: Any) -> Any:
    return client.list_shards(**question)


def _position(split: ShardSplit) -> dict[str, Any]:
    if split.offset:
        return {
            "ShardIteratorType": "AT_SEQUENCE_NUMBER",
            # At the record before: whether that comes again shows whether anything in between has
            # expired.
            "StartingSequenceNumber": str(split.offset - 1),
        }
    if split.sequence is not None:
        return {
            "ShardIteratorType": "AT_SEQUENCE_NUMBER",
            "StartingSequenceNumber": str(split.sequence),
        }
    if split.time is not None:
        time = dt.datetime.fromtimestamp(split.time / 1000, dt.UTC)
        return {"ShardIteratorType": "AT_TIMESTAMP", "Timestamp": time}
    return {"ShardIteratorType": "TRIM_HORIZON"}


def _shard(stream: str, shard: Mapping[str, Any]) -> Shard:
    parents = (shard.get("ParentShardId"), shard.get("AdjacentParentShardId"))
    return Shard(
        parents=tuple((stream, parent) for parent in parents if parent),
        is_open=not shard["SequenceNumberRange"].get("EndingSequenceNumber"),
    )


def _record(stream: str, shard: str, record: Mapping[str, Any]) -> Record:
    arrived = record["ApproximateArrivalTimestamp"]
    return Record(
        stream,
        shard,
        int(record["SequenceNumber"]),
        record["PartitionKey"],
        record["Data"],
        _micros(arrived),
    )


def _micros(time: dt.datetime) -> int:
    return round(time.timestamp() * 1_000_000)


def _millis(time: dt.datetime) -> int:
    return _micros(time) // 1000


def _server_time(answer: Mapping[str, Any]) -> int:
    """Time of the server's clock, in whole seconds: no record that came later is before it."""
    time = _date(answer)
    return _millis(dt.datetime.now(dt.UTC).replace(microsecond=0)) if time is None else time


def _date(answer: Mapping[str, Any]) -> int | None:
    """Time of the server's clock in milliseconds; None if the answer does not have it."""
    text = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date")
    return _millis(parsedate_to_datetime(text)) if text else None
