"""Pages of docs/reference, and others, that are made from the code.

``python -m support.reference`` writes them.
"""

from collections.abc import Callable, Mapping
from typing import Final

from support.reference import (
    chart_values,
    command_line,
    fields,
    files,
    hybrid,
    kinesis,
    labels,
    metrics,
    options,
    settings,
)

PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "fields.md": fields.page,
    "options.md": options.page,
    "metrics.md": metrics.page,
    "chart-values.md": chart_values.page,
    "../../charts/balanced-source/README.md": chart_values.readme,
    "settings.md": settings.page,
    "labels.md": labels.page,
    "command-line.md": command_line.page,
    "../files.md": files.page,
    "../hybrid.md": hybrid.page,
    "../kinesis.md": kinesis.page,
}
"""File below docs/reference → its content."""
