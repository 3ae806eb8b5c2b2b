"""Entry point of the commands ``balanced-source`` and ``kubectl bsrc``.

It imports nothing but Python, so that an installation without the extra [operator] gets a sentence,
not a traceback.
"""

import importlib
import importlib.metadata
import sys
from collections.abc import Callable
from typing import Final

EXTRA: Final = "balanced-source[operator]"


def main() -> None:
    """Run the command line."""
    try:
        run: Callable[[], None] = importlib.import_module("balanced_source_operator.cli").run
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("balanced_source"):
            raise
        sys.exit(
            f"balanced-source: the Python package {error.name!r} is not installed, and the command"
            f" line needs it. Run: pip install '{EXTRA}'"
        )
    run()


if __name__ == "__main__":
    main()
