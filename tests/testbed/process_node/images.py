"""What an image name stands for on a node without containers."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessImage:
    """An image made of the host's own files.

    Attributes:
        binds: path in the container and the host's file or folder that appears there.
        env: environment of every container of the image; the pod's own wins.
        entrypoint: what runs if the container has no command of its own.
        path: folders that come first on PATH.
        workdir: working directory if the container names none; its home folder if empty.
        visible: the host's folders that must be seen under their own path, also if they lie under
            `/tmp`, which is each pod's own.
    """

    binds: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    entrypoint: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    workdir: str = ""
    visible: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """From the result of `to_json`, possibly read back from a file."""
        return cls(
            binds=document["binds"],
            env=document["env"],
            entrypoint=tuple(document["entrypoint"]),
            path=tuple(document["path"]),
            workdir=document["workdir"],
            visible=tuple(document["visible"]),
        )


class UnknownImageError(Exception):
    """A pod asks for an image that this node has no mapping for; it will not come by waiting."""


def find_image(images: Mapping[str, ProcessImage], name: str) -> ProcessImage:
    """The image of a container.

    Raises:
        UnknownImageError: there is none; the message has the known names.
    """
    try:
        return images[name]
    except KeyError:
        known = ", ".join(sorted(images)) or "none"
        raise UnknownImageError(f"this node has no image {name!r}; it has: {known}") from None
