"""Whether another package registers something, found out without `importlib.metadata`.

Every query waits for this. `importlib.metadata` takes time to load, and reads the table of contents
of each archive on the path: in a process of Spark, that of Spark's own jar, with some ten thousand
names. Most installations have no connector but ours, and a look at their folders shows it.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Final

ENTRY_POINTS: Final = "entry_points.txt"
"""Of a package: a section per group, in it a line ``name = reference`` per entry point."""

SPARKS_OWN: Final = ("pyspark.zip", "py4j-*-src.zip", "spark-core_*.jar")
"""Archives that Spark puts on the path of its Python processes."""


def may_others_register(
    group: str, known: Mapping[str, str], *, path: Iterable[str] | None = None
) -> bool:
    """Return whether a package may have an entry point of a group that is not known.

    Where only `importlib.metadata` could tell, it may.

    Args:
        group: of entry points.
        known: references by name, which count as no one else's.
        path: of the process if not given.
    """
    # Tools that pack whole environments bring finders of their own.
    if any(hasattr(one, "find_distributions") for one in sys.meta_path if one is not PathFinder):
        return True
    return any(_may_register(place, group, known) for place in (sys.path if path is None else path))


def _may_register(place: str, group: str, known: Mapping[str, str]) -> bool:
    path = Path(place)  # an empty one is the current folder
    if path.suffix == ".egg":
        return True
    if path.is_file():
        return not any(fnmatchcase(path.name, pattern) for pattern in SPARKS_OWN)
    return any(not _registered(text, group) <= known.items() for text in _tables(path))


def _tables(folder: Path) -> Iterator[str]:
    """Yield the entry points of the packages in a folder, as they are written."""
    with suppress(OSError):  # some folders on every path do not exist
        for package in folder.iterdir():
            if package.suffix in {".dist-info", ".egg-info"}:
                with suppress(OSError):  # most packages have none
                    yield (package / ENTRY_POINTS).read_text("utf-8", errors="replace")


def _registered(text: str, group: str) -> set[tuple[str, str]]:
    """Return names and references of a group."""
    lines = text.partition(f"[{group}]")[2].partition("\n[")[0].splitlines()
    pairs = (line.partition("=") for line in lines if line.strip())
    return {(name.strip(), reference.strip()) for name, _, reference in pairs}
