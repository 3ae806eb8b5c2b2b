"""Labels and annotations, from the module that names them."""

from typing import Final

from balanced_source_operator.resources import kinds
from support.reference.docstrings import documented
from support.reference.markdown import head, table

TEXT: Final = "Labels and annotations that the operator sets on objects, or reads from them.\n"


def page() -> str:
    """Return the page."""
    rows = [
        (f"`{getattr(kinds, name)}`", name.rpartition("_")[2].lower(), text)
        for name, text in documented(kinds)
        if name.endswith(("_LABEL", "_ANNOTATION"))
    ]
    text = head(
        "Labels and annotations", "operator/src/balanced_source_operator/resources/kinds.py", TEXT
    )
    return text + "\n" + table(("name", "kind", "meaning"), rows)
