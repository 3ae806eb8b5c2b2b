"""Options of ``format("balanced")``, from options.toml; a test compares the names with those that the code reads."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from support.reference.markdown import head, table

FILE: Final = Path(__file__).with_name("options.toml")
TEXT: Final = """Options of `spark.readStream.format("balanced")` and `spark.read.format("balanced")`. Names are not
case sensitive. Exactly one of `source`, `assignmentDir` and `kafka.bootstrap.servers` says who assigns splits.
The packaged application sets the options from the manifest; use this page for a program of your own.
"""


def options() -> Mapping[str, Mapping[str, Any]]:
    """Return group → name → default and meaning."""
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


def page() -> str:
    """Return the page."""
    parts = [head('Options of format("balanced")', "tests/support/reference/options.toml", TEXT)]
    for group, found in options().items():
        rows = [(f"`{name}`", entry.get("default", ""), entry["meaning"]) for name, entry in found.items()]
        parts.append(f"\n## {group}\n\n" + table(("option", "default", "meaning"), rows))
    return "".join(parts)
