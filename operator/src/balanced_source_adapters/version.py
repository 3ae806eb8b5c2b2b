"""The version of this installation."""

import importlib.metadata
from typing import Final

DISTRIBUTION: Final = "balanced-source"


def _installed() -> str:
    try:
        return importlib.metadata.version(DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:  # runs from a folder on PYTHONPATH
        return "0+unknown"


__version__: Final = _installed()
