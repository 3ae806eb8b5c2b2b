"""The page of the hybrid source: `hybrid_text.md`, and the options that the code declares."""

from pathlib import Path
from typing import Final

from balanced_source_spark.hybrid.option_names import OPTIONS
from support.reference.markdown import head, table

ORIGIN: Final = (
    "tests/support/reference/hybrid_text.md and option_names.py of balanced_source_spark.hybrid"
)


def page() -> str:
    """Return the page."""
    text = Path(__file__).with_name("hybrid_text.md").read_text(encoding="utf-8")
    options = table(
        ("option", "default", "meaning"), [(f"`{o.name}`", o.default, o.meaning) for o in OPTIONS]
    )
    return head("Files, then Kafka", ORIGIN, text) + options
