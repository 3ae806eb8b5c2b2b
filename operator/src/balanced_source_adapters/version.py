"""The version of this installation.

Who needs it looks it up: that loads `importlib.metadata`, for which a query would have to wait.
"""

import os
from collections.abc import Mapping
from typing import Final

from balanced_source.documents.environment import DOCUMENTATION

DISTRIBUTION: Final = "balanced-source"
_NO_ONES: Final = "example.org/"
"""Of the addresses in a package that no maintainer has given its own (RFC 2606)."""


def installed_version() -> str:
    """Return the version of the package that is installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:  # runs from a folder on PYTHONPATH
        return "0+unknown"


def documentation(environment: Mapping[str, str] = os.environ) -> str:
    """Return the address of the documentation, with a slash at its end.

    It is that of the environment, or else that of the package. Empty if neither names one.
    """
    found = environment.get(DOCUMENTATION, "").strip() or _of_the_package()
    return found and f"{found.rstrip('/')}/"


def page(name: str) -> str:
    """Return where people find a page of the documentation.

    Args:
        name: path of the page below `docs`, without its suffix.
    """
    site = documentation()
    return f"{site}{name}/" if site else f"docs/{name}.md"


def _of_the_package() -> str:
    from importlib.metadata import PackageNotFoundError, metadata

    try:
        links = metadata(DISTRIBUTION).get_all("Project-URL") or ()
    except PackageNotFoundError:
        return ""
    found = (str(link).partition(", ") for link in links)
    address = next((address for label, _, address in found if label == "Documentation"), "")
    return "" if _NO_ONES in address else address
