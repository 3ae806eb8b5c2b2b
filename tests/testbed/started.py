"""Parts that are context managers.

Started, and stopped whatever happens, also when they start by halves.
"""

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Started(ABC):
    """Base of a part; usable more than once only if its `start` says so."""

    @abstractmethod
    def start(self) -> None:
        """Start everything; what is raised ends what was started before."""

    @abstractmethod
    def end(self, error: BaseException | None) -> None:
        """Stop everything and let go of what was taken; `error` is why, None when all went well."""

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException as error:
            self.end(error)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end(error)
