"""What the readers of a hybrid source must know besides their splits: the settings of its parts."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final, Self

from balanced_source.api import Json
from balanced_source.connectors.reader_settings import ReaderSettings

KIND: Final = "hybrid"
"""Key of these settings among those of an assignment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HybridReaderSettings(ReaderSettings):
    """How readers read.

    Attributes:
        parts: name of a part → what `reader_settings` of its source returned, which only the
            connector of the part can read.
    """

    kind: ClassVar[str] = KIND

    parts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Json]:
        """Return the JSON value of the settings."""
        return {name: dict(settings) for name, settings in self.parts.items()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Inverse of `to_json`, also for what older versions wrote."""
        return cls(parts={name: _checked(name, settings) for name, settings in data.items()})

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """Return the settings of a hybrid source among all settings of an assignment.

        Without parts while a driver has no assignment.

        Raises:
            CorruptDocumentError: they are malformed.
        """
        return cls.found(settings) or cls()

    def part(self, name: str) -> Mapping[str, Any]:
        """Return the settings of a part; nothing if there are none."""
        return self.parts.get(name, {})

    def with_former(
        self,
        former: Self,
        joined: Callable[[str, Mapping[str, Any], Mapping[str, Any]], Mapping[str, Any]],
    ) -> Self:
        """Return these settings, each part joined with its former ones.

        Args:
            former: settings of earlier assignments.
            joined: gets name, settings and former settings of a part.
        """
        parts = {name: joined(name, own, former.part(name)) for name, own in self.parts.items()}
        return replace(self, parts=parts)


def _checked(name: str, settings: object) -> Mapping[str, Any]:
    if not isinstance(settings, Mapping):
        raise TypeError(f"part {name} is a {type(settings).__name__}")
    return settings
