"""What the service answers, as errors in words: which stream, where, what happened, what to do."""

import threading
from collections.abc import Mapping
from typing import Any

import pytest
from botocore import exceptions

from balanced_source.connectors.kinesis import Server, ShardSplit
from balanced_source.errors import DiscoveryError, RefusedDiscoveryError, TransientDiscoveryError
from balanced_source.reasons import Reason
from balanced_source_adapters.kinesis import client as module
from balanced_source_adapters.kinesis.client import (
    BadPositionError,
    ExpiredCredentialsError,
    IteratorExpiredError,
    KinesisClient,
    NotFoundError,
    ThrottledError,
)

SERVER = Server(region="eu-west-1", secret="streams")  # noqa: S106 - a name
GIVEN = {"accessKeyId": "AKIA", "secretAccessKey": "hidden-value"}
SPLIT = ShardSplit(stream="orders", shard="shardId-000000000000", offset=5)


class Secrets:
    """One Secret, or none."""

    def __init__(self, given: Mapping[str, str] | None) -> None:
        self.given = given

    def read(self, name: str) -> Mapping[str, str]:
        if self.given is None:
            raise LookupError(f"secret {name} does not exist: create it")
        return self.given


class Service:
    """Answers each operation with an error, or with nothing."""

    def __init__(self, error: Exception | None = None, **answer: Any) -> None:
        self.error, self.answer = error, answer

    def __getattr__(self, operation: str) -> Any:
        def ask(**_: Any) -> Any:
            if self.error is not None:
                raise self.error
            return self.answer

        return ask


def refused(code: str, text: str = "told by the service") -> Exception:
    return exceptions.ClientError({"Error": {"Code": code, "Message": text}}, "GetRecords")


def client(
    monkeypatch: pytest.MonkeyPatch, service: Service, given: Mapping[str, str] | None = GIVEN
) -> KinesisClient:
    monkeypatch.setattr(module, "_client", lambda *_: service)
    return KinesisClient(SERVER, Secrets(given), client_id="test")


@pytest.mark.scenario("P11")
@pytest.mark.parametrize(
    ("error", "kind", "reason", "words"),
    [
        (
            refused("ResourceNotFoundException", "Stream orders under account 1 not found"),
            NotFoundError,
            Reason.NOT_FOUND,
            (
                "was not found .*: create it, or correct its name, its region or the account of the"
                " credentials"
            ),
        ),
        (
            refused("UnrecognizedClientException"),
            RefusedDiscoveryError,
            Reason.AUTHENTICATION_FAILED,
            "correct the credentials in Secret streams, or their rights",
        ),
        (
            refused(
                "InvalidSignatureException",
                "Signature expired: 20260101T000000Z is now earlier than 20260101T010000Z",
            ),
            RefusedDiscoveryError,
            Reason.AUTHENTICATION_FAILED,
            "the clock of this machine differs too much",
        ),
        (
            refused("AccessDeniedException"),
            RefusedDiscoveryError,
            Reason.NOT_AUTHORIZED,
            "Secret streams",
        ),
        (
            refused("ExpiredTokenException"),
            ExpiredCredentialsError,
            Reason.AUTHENTICATION_FAILED,
            "the session token in Secret streams has expired: renew it",
        ),
        (
            refused("ProvisionedThroughputExceededException"),
            ThrottledError,
            None,
            "asked too often",
        ),
        (refused("ExpiredIteratorException"), IteratorExpiredError, None, "iterator has expired"),
        (
            refused("InvalidArgumentException", "no such"),
            BadPositionError,
            Reason.POSITION_OUT_OF_RANGE,
            "no such",
        ),
        (
            refused("ValidationException", "1 validation error detected"),
            RefusedDiscoveryError,
            Reason.INVALID_PROPERTIES,
            "1 validation error detected.: correct the name of the stream",
        ),
        (refused("InternalFailure"), TransientDiscoveryError, None, "answers InternalFailure"),
        (
            exceptions.EndpointConnectionError(
                endpoint_url="https://kinesis.eu-wst-1.amazonaws.com/"
            ),
            TransientDiscoveryError,
            None,
            "does not answer: .*eu-wst-1.*Check the region, the endpoint and the network",
        ),
        (
            exceptions.ReadTimeoutError(endpoint_url="http://x"),
            TransientDiscoveryError,
            None,
            "does not answer",
        ),
        (
            exceptions.NoCredentialsError(),
            RefusedDiscoveryError,
            Reason.AUTHENTICATION_FAILED,
            "no credentials in",
        ),
        (
            exceptions.NoRegionError(),
            RefusedDiscoveryError,
            Reason.INVALID_PROPERTIES,
            "the region is unknown",
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_each_refusal_names_the_stream_and_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    kind: type[DiscoveryError],
    reason: Reason | None,
    words: str,
) -> None:
    """The error names the stream, its region and the Secret, and what to do, but no secret."""
    with pytest.raises(kind, match=words) as caught:
        client(monkeypatch, Service(error)).iterator(SPLIT)

    assert caught.value.scope == "orders"
    assert "stream orders" in str(caught.value)
    assert "hidden-value" not in str(caught.value)
    # Waiting creates no stream.
    assert getattr(caught.value, "is_hopeless", False) is (kind is NotFoundError)
    if reason is not None:
        assert caught.value.reason is reason


@pytest.mark.scenario("P11")
@pytest.mark.parametrize(
    ("given", "words"),
    [
        (None, "^secret streams does not exist: create it"),
        ({"accessKeyId": "AKIA"}, "lacks the key secretAccessKey: add it"),
    ],
)
def test_a_secret_that_is_missing_or_lacks_a_key_is_named(
    monkeypatch: pytest.MonkeyPatch, given: Mapping[str, str] | None, words: str
) -> None:
    """The error names the Secret and the key."""
    with pytest.raises(RefusedDiscoveryError, match=words) as caught:
        client(monkeypatch, Service(), given).shards("orders")

    assert caught.value.reason is Reason.SECRET_NOT_FOUND


@pytest.mark.scenario("P13")
@pytest.mark.parametrize(
    ("told", "behind"),
    [({"MillisBehindLatest": 0}, 0), ({"MillisBehindLatest": 70}, 70), ({}, None)],
)
def test_a_lag_that_the_service_does_not_report_is_unknown(
    monkeypatch: pytest.MonkeyPatch, told: dict[str, int], behind: int | None
) -> None:
    """Neither 0 nor a former number."""
    asked = client(monkeypatch, Service(Records=[], NextShardIterator="next", **told))

    answer = asked.records("orders", "shardId-000000000000", "now", 10)

    assert answer == ((), "next", behind, None)


@pytest.mark.parametrize(
    ("code", "kind", "words"),
    [
        ("InvalidArgumentException", RefusedDiscoveryError, "correct the name of the stream"),
        ("ExpiredNextTokenException", TransientDiscoveryError, "answers ExpiredNextTokenException"),
        ("ResourceInUseException", TransientDiscoveryError, "answers ResourceInUseException"),
        ("LimitExceededException", ThrottledError, "asked too often"),
    ],
)
def test_a_listing_that_is_refused_has_no_wrong_position(
    monkeypatch: pytest.MonkeyPatch, code: str, kind: type[DiscoveryError], words: str
) -> None:
    """It asks for none: nobody looks for a sequence number that no one gave."""
    with pytest.raises(kind, match=words) as caught:
        client(monkeypatch, Service(refused(code))).shards("orders")

    assert type(caught.value) is kind


def test_a_missing_stream_may_be_called_after_a_sequence_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A stream that does not exist is not one without a sequence number."""
    name = "lastSequenceNumberStamp"
    text = f"Stream {name} under account 1 not found"
    service = Service(refused("ResourceNotFoundException", text))

    with pytest.raises(NotFoundError, match="was not found"):
        client(monkeypatch, service).summary(name)


class WatchedLock:
    """Counts who asks for it."""

    def __init__(self) -> None:
        self.asked, self._lock = threading.Semaphore(0), threading.Lock()

    def __enter__(self) -> None:
        self.asked.release()
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def test_readers_that_begin_together_make_one_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client takes a tenth of a second of the processor, and each shard has a thread."""
    lock, made = WatchedLock(), list[Service]()
    shared: Any = KinesisClient(SERVER, Secrets(GIVEN), client_id="test")
    shared._lock = lock

    def make(*_: object) -> Service:
        made.append(Service())
        for _thread in threads:
            assert lock.asked.acquire(timeout=30)
        return made[-1]

    monkeypatch.setattr(module, "_client", make)
    threads = [threading.Thread(target=shared._client, args=("orders",)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert [shared._client("orders")] == made
