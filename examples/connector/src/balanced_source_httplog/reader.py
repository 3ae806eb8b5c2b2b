"""What runs in a task: a split reader that fetches pages, and the source reader around it."""

import threading
from typing import Final

from balanced_source.api import (
    RecordEmitter,
    SourceOutput,
    SourceReaderContext,
    SplitId,
    SplitReader,
    SplitsAddition,
    SplitsChange,
)
from balanced_source.reader import RecordsBySplits, SourceReaderBase, Threading
from balanced_source_adapters.fetchers import ThreadedFetchers
from balanced_source_httplog.client import LogClient
from balanced_source_httplog.source import Entry, LogSplit

PAUSE: Final = 0.1
"""Seconds between two looks at logs that had nothing new."""


class HttpLogSplitReader(SplitReader[Entry, LogSplit]):
    """Fetches a page of each of its logs at a time.

    Args:
        client: asks the API.
    """

    def __init__(self, client: LogClient) -> None:
        self._client = client
        self._splits: dict[SplitId, LogSplit] = {}
        self._woken = threading.Event()

    def fetch(self) -> RecordsBySplits[Entry]:
        pages = {s: self._page(split) for s, split in self._splits.items()}
        if not any(pages.values()):
            self._woken.wait(PAUSE)
        self._woken.clear()
        return RecordsBySplits({s: page for s, page in pages.items() if page})

    def handle_splits_changes(self, change: SplitsChange[LogSplit]) -> None:
        for split in change.splits:
            self._splits.pop(split.split_id, None)
            if isinstance(change, SplitsAddition):
                self._splits[split.split_id] = split

    def wake_up(self) -> None:
        self._woken.set()

    def close(self) -> None:
        self._splits.clear()

    def _page(self, split: LogSplit) -> list[Entry]:
        texts = self._client.page(split.name, split.number)
        self._splits[split.split_id] = split.at(split.number + len(texts))
        return [Entry(split.name, split.number + i, text) for i, text in enumerate(texts)]


class HttpLogEmitter(RecordEmitter[Entry, Entry, list[LogSplit]]):
    """An entry is a record."""

    def emit_record(
        self, element: Entry, output: SourceOutput[Entry], split_state: list[LogSplit]
    ) -> None:
        output.collect(element)
        split_state[0] = split_state[0].at(element.number + 1)


class HttpLogReader(SourceReaderBase[Entry, Entry, LogSplit, list[LogSplit]]):
    """Reads the logs of one task; its thread fetches the next pages meanwhile.

    Args:
        context: of the reader.
        client: asks the API.
    """

    def __init__(self, context: SourceReaderContext, client: LogClient) -> None:
        fetchers = ThreadedFetchers(
            lambda: HttpLogSplitReader(client),
            Threading.ONE_READER,
            notify=context.notify_available,
        )
        super().__init__(context, fetchers, HttpLogEmitter())

    def initialized_state(self, split: LogSplit) -> list[LogSplit]:
        return [split]

    def to_split(self, split_id: SplitId, state: list[LogSplit]) -> LogSplit:
        return state[0]
