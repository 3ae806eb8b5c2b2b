"""Class data archives: a JVM that reads its classes from one needs half the CPU time to start.

Tests start hundreds of Spark drivers that live for seconds, so most of their time is the loading
and verifying of the same classes. An archive (JEP 350) is valid for one JVM and one class path:
absolute paths, sizes and times of the jars. The JVM ignores an archive that does not fit.
"""

from pathlib import Path

from testbed.cache import Cache, content_key
from testbed.commands import run
from testbed.errors import BuildError, CommandError
from testbed.java import java, java_version
from testbed.progress import Progress
from testbed.venvs import spark_home

_PROGRAM = Path(__file__).with_name("spark_classes.py")
_QUIET = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")
"""An archive that does not fit is no news: the JVM would print it on the standard output."""


def spark_driver_options(
    venv: Path, cache: Cache | None = None, progress: Progress | None = None
) -> tuple[str, ...]:
    """Return JVM options with which local Spark drivers of an environment start faster.

    Builds the archive if the cache lacks it: about 20 s of one core, 150 MB.

    Args:
        venv: an environment with PySpark.
        cache: where archives are kept.
        progress: is told about a build.

    Raises:
        BuildError: Spark does not run.
    """
    home = spark_home(venv)

    def build(target: Path) -> None:
        with (progress or Progress()).step("archive the classes of Spark"):
            _archive(venv, target / "spark.jsa")

    folder = (cache or Cache()).artefact("spark-classes", _key(home), build)
    return ("-XX:SharedArchiveFile=" + str(folder / "spark.jsa"), *_QUIET)


def _key(home: Path) -> str:
    jars = sorted((home / "jars").glob("*.jar"))
    states = [f"{jar} {jar.stat().st_size} {jar.stat().st_mtime_ns}" for jar in jars]
    return content_key(java_version(java()), str(home), _PROGRAM, *states)


def _archive(venv: Path, file: Path) -> None:
    python = venv / "bin" / "python"
    env = {
        "SPARK_SUBMIT_OPTS": f"-XX:ArchiveClassesAtExit={file} {' '.join(_QUIET)}",
        "PYSPARK_PYTHON": str(python),
    }
    try:
        run([python, _PROGRAM], env=env)
    except CommandError as error:
        raise BuildError(f"cannot archive the classes of Spark: {error.stderr[-3000:]}") from error
    if not file.is_file():
        raise BuildError(f"Spark of {venv} ended without an archive of its classes")
