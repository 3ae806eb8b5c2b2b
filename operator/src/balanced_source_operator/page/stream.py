"""What one viewer is sent: changes of the list of sources, and one source in full. No I/O."""

import json
from typing import Any

from balanced_source_operator.page.access import Guest
from balanced_source_operator.page.board import Key, Shown, StatusBoard


class Feed:
    """Mutable; of one viewer."""

    def __init__(self, board: StatusBoard, key: Key | None) -> None:
        self._board = board
        self._key = key
        self._seen_at = -1
        self._sent: set[Key] = set()

    async def news(self, guest: Guest) -> list[bytes]:
        """Return the events to send. Empty if nothing has changed since the last call.

        Raises:
            AccessError: no one knows what the guest may see.
        """
        since, self._seen_at = self._seen_at, self._board.version
        keys = self._board.keys()
        namespaces = {
            namespace for namespace in {key[0] for key in keys} if await guest.may_see(namespace)
        }
        visible = [key for key in keys if key[0] in namespaces]
        changed = [
            (key, shown)
            for key in visible
            if (shown := self._board.get(key)) and shown.version > since
        ]
        rows = [shown.exhibit.summary(shown.look()) for key, shown in changed]
        gone = sorted(self._sent - set(visible))
        self._sent = set(visible)
        events = (
            [event("sources", {"changed": rows, "gone": gone})] if rows or gone or since < 0 else []
        )
        return [
            *events,
            *self._source(dict(changed).get(self._key) if self._key is not None else None),
        ]

    def _source(self, shown: Shown | None) -> list[bytes]:
        if shown is None:
            return []
        seen = shown.look()
        return [
            event("source", shown.exhibit.detail(seen)),
            event("splits", shown.exhibit.splits(seen)),
        ]


def event(name: str, data: Any) -> bytes:
    """Return a server-sent event; JSON has no line breaks, so its data is one line."""
    return f"event: {name}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n".encode()
