"""Notifications of new objects: events of an S3 store in a queue of SQS.

They are hints that save listings. An object that an event names is checked, and taken as one that
was listed. Messages are deleted when the state that covers them is stored. What no event has named
is found by the next whole listing.
"""

import json
from collections.abc import Iterable
from typing import Any, Final, NamedTuple
from urllib.parse import unquote_plus, urlsplit

from balanced_source.api import SecretReader
from balanced_source.connectors.files import Store
from balanced_source.errors import TransientDiscoveryError
from balanced_source.names import is_unicode, shown
from balanced_source_adapters.files.stores import credentials_of
from balanced_source_adapters.lazy_log import get_logger

REQUESTS: Final = 100
"""Requests of one look; each returns ten messages at most."""

log = get_logger(__name__)

_MESSAGES: Final = 10
_TIMEOUT: Final = 10
_CREATED: Final = "ObjectCreated:"


class Notices(NamedTuple):
    """What a queue holds.

    Attributes:
        paths: objects that were created, as the store names them, each once.
        receipts: of the messages, to delete them.
    """

    paths: tuple[str, ...]
    receipts: tuple[str, ...]


class Notifications:
    """Reads a queue.

    Args:
        store: whose credentials and region count.
        queue: URL of the queue.
        secrets: resolves the Secret of the store.
    """

    def __init__(self, store: Store, queue: str, secrets: SecretReader) -> None:
        self._queue = queue
        self._client = _client(store, queue, secrets)
        self._is_warned = False

    def receive(self) -> Notices:
        """Return the objects that the queue names now. Messages are hidden, and come again.

        Raises:
            TransientDiscoveryError: the queue does not answer, or refuses to.
        """
        paths: dict[str, None] = {}
        receipts: list[str] = []
        for _ in range(REQUESTS):
            answer = self._ask("receive_message", MaxNumberOfMessages=_MESSAGES)
            found = answer.get("Messages", [])
            receipts += [message["ReceiptHandle"] for message in found]
            for each in found:
                paths |= dict.fromkeys(self._created(each["Body"]))
            if not found:
                break
        return Notices(tuple(paths), tuple(receipts))

    def _created(self, body: str) -> tuple[str, ...]:
        if (paths := created(body)) is not None:
            return paths
        if not self._is_warned:
            self._is_warned = True
            log.warning(
                "the queue of notifications has a message that is not an event of S3. It is"
                " deleted, and the objects that such messages name are found by the next whole"
                " listing. Let the bucket send its events straight to the queue, without SNS or"
                " EventBridge",
                queue=self._queue,
                message=shown(body),
            )
        return ()

    def delete(self, receipts: Iterable[str]) -> None:
        """Delete messages.

        Raises:
            TransientDiscoveryError: see `receive`.
        """
        for receipt in receipts:
            self._ask("delete_message", ReceiptHandle=receipt)

    def _ask(self, what: str, **arguments: Any) -> Any:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            return getattr(self._client, what)(QueueUrl=self._queue, **arguments)
        except (BotoCoreError, ClientError) as error:
            raise TransientDiscoveryError(
                f"cannot read notifications from the queue {self._queue}: {error}. Check its URL,"
                " the region and the credentials",
                scope="files",
            ) from error


def created(body: str) -> tuple[str, ...] | None:
    """Return the objects that a message says were created, as ``bucket/key``.

    None for a message that is not of S3. Records that cannot be read hide no others.
    """
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        return None
    match message:
        case {"Records": list(records)}:
            return tuple(path for record in records if (path := _created(record)) is not None)
        case {"Event": "s3:TestEvent"}:
            return ()  # of a configuration that was changed
        case _:
            return None


def _created(record: Any) -> str | None:
    match record:
        case {
            "eventName": str(event),
            "s3": {"bucket": {"name": str(bucket)}, "object": {"key": str(key)}},
        } if event.startswith(_CREATED):
            path = f"{bucket}/{unquote_plus(key)}"
            return path if is_unicode(path) else None
        case _:
            return None


def _client(store: Store, queue: str, secrets: SecretReader) -> Any:
    import botocore.session
    from botocore.config import Config

    parts = urlsplit(queue)
    given = credentials_of(store.secret, secrets)
    config = Config(
        connect_timeout=_TIMEOUT, read_timeout=_TIMEOUT, retries={"total_max_attempts": 2}
    )
    session = botocore.session.Session()
    if given:
        session.set_credentials(
            given["access_key"], given["secret_key"], given.get("session_token")
        )
    return session.create_client(
        "sqs",
        region_name=store.region or _region(parts.hostname or "") or None,
        endpoint_url=f"{parts.scheme}://{parts.netloc}",
        config=config,
    )


def _region(host: str) -> str:
    """Return the region in the host of AWS; empty for another host."""
    words = host.split(".")
    return words[1] if words[0] == "sqs" and len(words) > 3 else ""  # noqa: PLR2004
