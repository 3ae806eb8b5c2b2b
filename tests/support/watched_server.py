"""What an informer lists and watches, as a test says."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from balanced_source_operator.kube.stream import Listing, WatchEvent
from balanced_source_operator.resources.kinds import ResourceKind


class Server:
    """Lists `items`, and plays `news` to each watch: changes, or errors to raise."""

    def __init__(self, *items: dict[str, Any]) -> None:
        self.items = list(items)
        self.news: asyncio.Queue[WatchEvent | Exception | None] = asyncio.Queue()
        self.refusal: Exception | None = None
        self.lists = 0
        self.watched_from: list[str] = []

    async def list_all(self, kind: ResourceKind, namespace: str, *, selector: str) -> Listing:
        self.lists += 1
        if self.refusal is not None:
            raise self.refusal
        revisions = [int(item["metadata"]["resourceVersion"]) for item in self.items]
        return Listing(list(self.items), str(max(revisions, default=1)))

    async def watch(
        self, kind: ResourceKind, namespace: str, *, selector: str, revision: str
    ) -> AsyncGenerator[WatchEvent, None]:
        self.watched_from.append(revision)
        while (news := await self.news.get()) is not None:
            if isinstance(news, Exception):
                raise news
            yield news
