"""The golden files: write-once, with a list of their digests that is only ever appended to.

A file that is listed belongs to a version that may be in use somewhere. A format that changes gets
a new version, a reader for the former one, and a new file; `write_once` refuses everything else.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parents[1] / "golden"
DIGESTS: Final = "DIGESTS"
"""Name of the list: one line per file, in the format of sha256sum, oldest first."""


class GoldenChangedError(Exception):
    """The code writes other bytes than a version that is in use wrote."""


def golden(kind: str, version: int, which: str = "") -> str:
    """Returns what a version wrote; `which` tells several files of one version apart."""
    return (
        (FOLDER / f"{kind}-v{version}{which}.json").read_text(encoding="utf-8").removesuffix("\n")
    )


def digests(folder: Path = FOLDER) -> Mapping[str, str]:
    """Returns file name → SHA-256 of all listed files, in the order of the list."""
    lines = (folder / DIGESTS).read_text(encoding="utf-8").splitlines()
    return {name: digest for digest, name in (line.split("  ") for line in lines)}


def digest(path: Path) -> str:
    """Returns the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def write_once(name: str, document: str, folder: Path = FOLDER) -> None:
    """Writes a golden file and lists it, unless it exists.

    Raises:
        GoldenChangedError: it exists with other bytes.
    """
    path, listed = folder / name, digests(folder)
    content = f"{document}\n".encode()
    if not path.exists() and name not in listed:
        path.write_bytes(content)
    if hashlib.sha256(content).hexdigest() != listed.get(name, digest(path)):
        raise GoldenChangedError(
            f"{name} is in use, and the code writes other bytes now. Golden files are never written"
            " again: give the format a new version, keep a reader for this one, and run `make"
            " generate`."
        )
    if name not in listed:
        with (folder / DIGESTS).open("a", encoding="utf-8") as file:
            file.write(f"{digest(path)}  {name}\n")
