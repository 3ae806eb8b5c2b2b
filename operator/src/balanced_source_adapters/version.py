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


def documentation() -> str:
    """Return the address of the documentation; empty if this installation names none."""
    try:
        links = importlib.metadata.metadata(DISTRIBUTION).get_all("Project-URL") or ()
    except importlib.metadata.PackageNotFoundError:
        return ""
    found = (str(link).partition(", ") for link in links)
    return next((address for label, _, address in found if label == "Documentation"), "")
