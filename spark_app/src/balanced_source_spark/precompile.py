"""Compile Spark's own Python once.

``python -m balanced_source_spark.precompile``, when an image is built.

Spark puts `python/lib/pyspark.zip` and Py4J's archive first on the path of every Python process
that it starts: for the schema of a source, to hand over its reader, to plan, and for each worker.
The archives hold sources only, and Python keeps no bytecode of what it imports from an archive, so
each of these processes compiles PySpark again: half a second of a core, which a query pays four
times and more at its start. Bytecode takes that to a fifth.

Each archive is replaced by a folder of the same name. Python accepts either on its path, but reads
the table of contents of an archive in each process: with 1,200 sources, that is a quarter of what
the imports take. An installation that sends its archives elsewhere, as `spark-submit --master yarn`
does, must keep them.
"""

import compileall
import importlib.util
import shutil
import sys
import zipfile
from pathlib import Path
from py_compile import PycInvalidationMode
from typing import Final

_QUIET: Final = 2
"""Level of `compileall` at which it prints nothing; sources of other versions of Python stay as
they are."""


def is_compiled(archive: Path) -> bool:
    """Whether an archive was replaced by a folder."""
    return archive.is_dir()


def unpack(archive: Path) -> int:
    """Replace an archive of Python sources by a folder of that name, with bytecode beside them.

    The archive may be a hard link into a cache: other links to it keep what they have. Interpreters
    of another version use the sources.

    Returns:
        How many sources there are.
    """
    partial = archive.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    with zipfile.ZipFile(archive) as opened:
        opened.extractall(partial)
    compileall.compile_dir(
        partial,
        quiet=_QUIET,
        stripdir=str(partial),
        prependdir=str(archive),
        # Never checked against the sources at an import: those of an image do not change.
        invalidation_mode=PycInvalidationMode.UNCHECKED_HASH,
    )
    # Last: an installation that is cut off before keeps its archive.
    archive.unlink()
    partial.rename(archive)
    return sum(1 for _ in archive.rglob("*.py"))


def archives() -> list[Path]:
    """Return the archives of the installed PySpark, or the folders that replaced them.

    Raises:
        ModuleNotFoundError: there is none.
    """
    found = importlib.util.find_spec("pyspark")
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError("PySpark is not installed for this interpreter")
    return sorted((Path(found.submodule_search_locations[0]) / "python" / "lib").glob("*.zip"))


def main() -> None:
    """Unpack and compile each archive that is not compiled yet, and print what was done."""
    for archive in archives():
        if not is_compiled(archive):
            sys.stderr.write(f"compiled sources of {archive.name}: {unpack(archive)}\n")


if __name__ == "__main__":
    main()
