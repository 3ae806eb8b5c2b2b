"""What a task that reads with a journal offers to the connector's reader."""

import threading

from balanced_source.api import SourceEvent, SourceReaderContext
from balanced_source.errors import ContractViolationError
from balanced_source.host.journaling import Share
from balanced_source_spark.place import this_place


class TaskContext(SourceReaderContext):
    """What a task offers to its reader.

    Args:
        share: of the reader.
    """

    def __init__(self, share: Share) -> None:
        self._share = share
        self._available = threading.Event()

    @property
    def subtask_id(self) -> int:
        return self._share.key.reader

    @property
    def location(self) -> str:
        return this_place().host

    @property
    def zone(self) -> str:
        return this_place().zone

    def current_parallelism(self) -> int:
        return self._share.parallelism

    def send_split_request(self) -> None:
        """Nothing to do: the host requests splits on behalf of its readers."""

    def send_source_event_to_coordinator(self, event: SourceEvent) -> None:
        raise ContractViolationError(
            f"a Spark task cannot send event {event.name}: it outlives no micro-batch"
        )

    def notify_available(self) -> None:
        self._available.set()

    def wait(self, timeout: float) -> None:
        """Wait until the reader says that something is there."""
        self._available.wait(timeout)
        self._available.clear()
