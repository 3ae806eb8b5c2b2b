"""Secrets as mounted files: a folder per Secret, a file per property."""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from balanced_source.names import checked_object


def texts(properties: Mapping[str, bytes]) -> dict[str, str]:
    """Return the properties that are text, without newlines at their ends.

    The others are left out: Secrets of Strimzi and cert-manager hold key stores for Java beside
    what is used here.
    """
    found = {}
    for name, value in properties.items():
        with contextlib.suppress(UnicodeDecodeError):
            found[name] = value.decode().rstrip("\n")
    return found


@dataclass(frozen=True, slots=True)
class MountedSecrets:
    """See `SecretReader`; reads again each time, so that a rotated Secret is picked up."""

    folder: Path | None

    def read(self, name: str) -> Mapping[str, str]:
        """Returns the properties of one Secret.

        Raises:
            LookupError: it is not mounted, or empty.
            InvalidSpecError: the name would lead out of the folder.
        """
        checked_object(name, field="name of a Secret")
        if self.folder is None or not (self.folder / name).is_dir():
            raise LookupError(
                f"secret {name} is not mounted: name it in the BalancedSource, e.g. in"
                " propertiesFrom"
            )
        files = (
            path
            for path in (self.folder / name).iterdir()
            if path.is_file() and not path.name.startswith(".")
        )
        found = texts({path.name: path.read_bytes() for path in files})
        # its volume is optional: pods start without it, and see it soon after it was created
        if not found:
            raise LookupError(f"secret {name} does not exist or is empty: create it")
        return found
