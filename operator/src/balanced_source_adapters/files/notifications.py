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
from balanced_source_adapters.files.stores import credentials_of

REQUESTS: Final = 100
"""Requests of one look; each returns ten messages at most."""

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
            paths |= dict.fromkeys(path for each in found for path in created(each["Body"]))
            if not found:
                break
        return Notices(tuple(paths), tuple(receipts))

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


def created(body: str) -> tuple[str, ...]:
    """Return the objects that a message says were created, as ``bucket/key``.

    Empty for a message that is not an event of S3, such as the one that tests a configuration.
    """
    try:
        records = json.loads(body)["Records"]
        return tuple(
            f"{record['s3']['bucket']['name']}/{unquote_plus(record['s3']['object']['key'])}"
            for record in records
            if str(record["eventName"]).startswith(_CREATED)
        )
    except (ValueError, KeyError, TypeError):
        return ()


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
