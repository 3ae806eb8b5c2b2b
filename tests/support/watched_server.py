"""What an informer lists and watches, as a test says."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from balanced_source_operator.kube.stream import ListPage, WatchEvent
from balanced_source_operator.resources.kinds import ResourceKind


class Server:
    """Lists `items`, and plays `news` to each watch: changes, or errors to raise."""

    def __init__(self, *items: dict[str, Any]) -> None:
        self.items = list(items)
        self.news: asyncio.Queue[WatchEvent | Exception | None] = asyncio.Queue()
        self.refusal: Exception | None = None
        self.lists = 0
        self.page = 100
        self.watched_from: list[str] = []

    async def pages(
        self, kind: ResourceKind, namespace: str, *, selector: str
    ) -> AsyncGenerator[ListPage, None]:
        self.lists += 1
        if self.refusal is not None:
            raise self.refusal
        items = list(self.items)
        revision = str(max((int(i["metadata"]["resourceVersion"]) for i in items), default=1))
        for start in range(0, max(1, len(items)), self.page):
            yield ListPage(items[start : start + self.page], revision)
            await self.between_pages()

    async def between_pages(self) -> None:
        """Called after each page."""

    async def watch(
        self, kind: ResourceKind, namespace: str, *, selector: str, revision: str
    ) -> AsyncGenerator[WatchEvent, None]:
        self.watched_from.append(revision)
        while (news := await self.news.get()) is not None:
            if isinstance(news, Exception):
                raise news
            yield news
