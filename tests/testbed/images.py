"""The images of the process node: the checkout and the environments in the shape of containers."""

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from testbed.cache import Cache
from testbed.java import java_home
from testbed.process_node.images import ProcessImage
from testbed.progress import Progress
from testbed.venvs import ensure_venv, spark_home
from testbed.versions import CHECKOUT, SPARK

HOST = "balanced-source/host:dev"
"""The machine as it is, for pods of shell commands."""

OPERATOR = "balanced-source/operator:dev"
"""The operator of the checkout."""

_SOURCES = (CHECKOUT / "operator" / "src", CHECKOUT / "spark_app" / "src")
_RECIPE = CHECKOUT / "spark_app" / "image"
SPARK_FOLDER = "/opt/spark"


def spark_image_name(version: str) -> str:
    """The name of the image with a version of PySpark and the checkout's application."""
    return f"balanced-source/spark:{version}"


def catalogue(
    cache: Cache, progress: Progress, spark_versions: tuple[str, ...] = SPARK[:1]
) -> dict[str, ProcessImage]:
    """All images of the checkout; environments that are missing are installed.

    Args:
        cache: where environments are kept.
        progress: told about installations.
        spark_versions: those to have an image of.
    """
    images = {HOST: ProcessImage(), OPERATOR: operator_image(cache, progress)}
    for version in spark_versions:
        venv = ensure_venv(version, cache, progress)
        images[spark_image_name(version)] = spark_image(venv, cache)
    return images


def spark_image(venv: Path, cache: Cache) -> ProcessImage:
    """PySpark at its usual place, and the checkout's application beside it.

    Args:
        venv: environment with the wanted PySpark.
        cache: folder that the environment may lie in.
    """
    python = str(venv / "bin" / "python")
    return ProcessImage(
        binds={
            SPARK_FOLDER: str(spark_home(venv)),
            "/opt/balanced-source": str(_RECIPE),
            "/opt/entrypoint.sh": str(_RECIPE / "entrypoint.sh"),
        },
        env={
            "SPARK_HOME": SPARK_FOLDER,
            "JAVA_HOME": str(java_home()),
            "PYSPARK_PYTHON": python,
            "PYSPARK_DRIVER_PYTHON": python,
            # the image of a container has the packages installed
            "PYTHONPATH": os.pathsep.join(str(path) for path in _SOURCES),
        },
        entrypoint=("/opt/entrypoint.sh",),
        path=(str(venv / "bin"), str(java_home() / "bin")),
        visible=_visible(venv, cache),
    )


def with_jars(image: ProcessImage, folder: Path, jars: Iterable[Path]) -> ProcessImage:
    """The image with further jars beside those of Spark, as a Dockerfile would add them.

    Args:
        image: of Spark.
        folder: gets links to the image's own files and to the jars.
        jars: to be added.
    """
    spark = Path(image.binds[SPARK_FOLDER])
    (folder / "jars").mkdir(parents=True)
    for part in spark.iterdir():
        if part.name != "jars":
            (folder / part.name).symlink_to(part)
    added = list(jars)
    for jar in (*(spark / "jars").iterdir(), *added):
        (folder / "jars" / jar.name).symlink_to(jar)
    seen = (*image.visible, *(str(jar.parent) for jar in added))
    return replace(
        image, binds={**image.binds, SPARK_FOLDER: str(folder)}, visible=tuple(dict.fromkeys(seen))
    )


def operator_image(cache: Cache, progress: Progress) -> ProcessImage:
    """The checkout's operator in the environment that this program runs in."""
    venv = ensure_venv(SPARK[0], cache, progress)
    return ProcessImage(
        env={"PYTHONPATH": os.pathsep.join(str(path) for path in _SOURCES)},
        # the command `balanced-source`, which only an installed distribution has
        entrypoint=(
            str(venv / "bin" / "python"),
            "-c",
            "from balanced_source_operator.cli import app; app()",
        ),
        path=(str(venv / "bin"),),
        visible=_visible(venv, cache),
    )


def _visible(venv: Path, cache: Cache) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(path) for path in (CHECKOUT, cache.root, venv)))
