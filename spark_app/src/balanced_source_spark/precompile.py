"""Compile Spark's own Python once: ``python -m balanced_source_spark.precompile``, when an image is built.

Spark puts `python/lib/pyspark.zip` and Py4J's archive first on the path of every Python process that it starts: for
the schema of a source, to hand over its reader, to plan, and for each worker. The archives hold sources only, and
Python keeps no bytecode of what it imports from an archive, so each of these processes compiles PySpark anew: half a
second of a core, which a query pays four times and more at its start. With bytecode beside the sources it is a fifth.
"""

import importlib.util
import marshal
import struct
import sys
import zipfile
from pathlib import Path
from typing import Final

_UNCHECKED: Final = 0b01
"""Flag of bytecode that is never compared with its source (PEP 552): the two lie in one archive."""


def is_compiled(archive: Path) -> bool:
    """Whether there is bytecode in an archive."""
    with zipfile.ZipFile(archive) as opened:
        return any(name.endswith(".pyc") for name in opened.namelist())


def add_bytecode(archive: Path) -> int:
    """Add the bytecode of this interpreter's version beside each source; others fall back to the sources.

    The archive is replaced, not changed: it may be a hard link into a cache that others share.

    Args:
        archive: a zip of Python sources.

    Returns:
        How many sources there are.
    """
    partial, count = archive.with_suffix(".partial"), 0
    with zipfile.ZipFile(archive) as before, zipfile.ZipFile(partial, "w", zipfile.ZIP_STORED) as after:
        for entry in before.infolist():
            content = before.read(entry)
            after.writestr(entry, content)
            if entry.filename.endswith(".py"):
                after.writestr(f"{entry.filename}c", _bytecode(content, f"{archive}/{entry.filename}"))
                count += 1
    partial.replace(archive)
    return count


def archives() -> list[Path]:
    """Those of the installed PySpark.

    Raises:
        ModuleNotFoundError: there is none.
    """
    found = importlib.util.find_spec("pyspark")
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError("PySpark is not installed for this interpreter")
    return sorted((Path(found.submodule_search_locations[0]) / "python" / "lib").glob("*.zip"))


def main() -> None:
    """Compile what is not compiled yet, and say so."""
    for archive in archives():
        if not is_compiled(archive):
            sys.stderr.write(f"compiled {add_bytecode(archive)} sources of {archive.name}\n")


def _bytecode(source: bytes, name: str) -> bytes:
    code = compile(source, name, "exec", dont_inherit=True)
    head = importlib.util.MAGIC_NUMBER + struct.pack("<I", _UNCHECKED) + importlib.util.source_hash(source)
    return head + marshal.dumps(code)


if __name__ == "__main__":
    main()
