"""Python environments with each version of PySpark."""

import sys
from importlib import metadata
from pathlib import Path

from testbed.cache import Cache, content_key
from testbed.commands import nice, run
from testbed.errors import BuildError, CommandError
from testbed.progress import Progress
from testbed.versions import CHECKOUT, SPARK

PRECOMPILE = CHECKOUT / "spark_app" / "src" / "balanced_source_spark" / "precompile.py"


def ensure_venv(
    spark_version: str, cache: Cache | None = None, progress: Progress | None = None
) -> Path:
    """An environment with one version of PySpark and everything that the project needs.

    It is this program's own one if that has the version, else one in the cache. Of the latter only
    `bin/python` may be called: the scripts beside it name the folder in which they were installed.

    Args:
        spark_version: from `versions.SPARK`.
        cache: where environments are kept.
        progress: told about an installation.
    """
    if spark_version not in SPARK:
        raise BuildError(f"no environment with PySpark {spark_version}; known: {', '.join(SPARK)}")
    if _own_version() == spark_version:
        return Path(sys.prefix)
    major, minor, _ = spark_version.split(".")
    return _locked(f"dev-spark{major}{minor}", f"PySpark {spark_version}", cache, progress)


def ensure_connect_client(cache: Cache | None = None, progress: Progress | None = None) -> Path:
    """An environment in the cache with a client of Spark Connect.

    No JVM, and none of the project's dependencies.
    """
    return _locked("connect", "a client of Spark Connect", cache, progress)


def spark_home(venv: Path) -> Path:
    """PySpark's folder in an environment: the wheel is a whole Spark installation."""
    found = sorted(venv.glob("lib/python3*/site-packages/pyspark"))
    if not found:
        raise BuildError(f"there is no PySpark in {venv}")
    return found[0]


def _locked(lock: str, what: str, cache: Cache | None, progress: Progress | None) -> Path:
    recipe = (CHECKOUT / ".ci" / "locks" / f"{lock}.txt", CHECKOUT / ".ci" / "venv", PRECOMPILE)

    def install(target: Path) -> None:
        with (progress or Progress()).step(f"install {what}"):
            _install(target, lock)

    return (cache or Cache()).artefact(f"venv-{lock}", content_key(sys.version, *recipe), install)


def _own_version() -> str | None:
    try:
        return metadata.version("pyspark")
    except metadata.PackageNotFoundError:
        return None


def _install(target: Path, lock: str) -> None:
    try:
        run(nice([CHECKOUT / ".ci" / "venv", target, lock]), env={"PYTHON": sys.executable})
    except CommandError as error:
        raise BuildError(f"cannot install {lock}: {error.stderr[-3000:]}") from error
