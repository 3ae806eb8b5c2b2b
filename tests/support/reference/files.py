"""The page of the file source: `files_text.md`, and the options that the code declares."""

from pathlib import Path
from typing import Final

from balanced_source_spark.files.option_names import OPTIONS
from support.reference.markdown import head, table

ORIGIN: Final = (
    "tests/support/reference/files_text.md and option_names.py of balanced_source_spark.files"
)


def page() -> str:
    """Return the page."""
    rows = [(f"`{option.name}`", option.default, option.meaning) for option in OPTIONS]
    text = Path(__file__).with_name("files_text.md").read_text(encoding="utf-8")
    return head("Files", ORIGIN, text) + table(("option", "default", "meaning"), rows)
