"""Which releases of Spark this package runs on."""

import re
from typing import Final

OLDEST: Final = (4, 2)
"""The first release whose Python sources have admission control and ``AvailableNow``."""

_RELEASE: Final = re.compile(r"(\d+)\.(\d+)")


def check_spark_version(version: str) -> None:
    """Check that the installed PySpark is new enough; one without a readable version is taken.

    Raises:
        ImportError: names the version and what to install.
    """
    found = _RELEASE.match(version)
    if found is not None and (int(found[1]), int(found[2])) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise ImportError(
            f"PySpark {version} is too old for Balanced Source: install PySpark {oldest} or newer,"
            " and run it on a Spark of the same version"
        )
