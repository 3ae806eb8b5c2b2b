"""Options of ``format("balanced")``, as the code declares them."""

from collections.abc import Mapping
from typing import Final

from balanced_source_spark import journal_options
from balanced_source_spark.contract.option_table import Option
from balanced_source_spark.files import option_names as files
from balanced_source_spark.hybrid import option_names as hybrid
from balanced_source_spark.kafka import option_names as kafka
from balanced_source_spark.kinesis import option_names as kinesis
from balanced_source_spark.option_names import OPTIONS
from support.reference.markdown import head, table

ORIGIN: Final = (
    "option_names.py of balanced_source_spark and of its folders kafka, files, kinesis and hybrid,"
    " and journal_options.py"
)
TEXT: Final = """Options of `spark.readStream.format("balanced")` and
`spark.read.format("balanced")`. Names are not case sensitive. An unknown name is an error. `source`
or `assignmentDir` says who assigns splits; without them the driver does, and
`kafka.bootstrap.servers`, or `connector` with `path`, `streams` or `parts`, say what is read. With
`source` or `assignmentDir`, the BalancedSource says what is read, and options for that have no
effect. The packaged application sets the options from the manifest; use this page for a program of
your own.
"""


def options() -> Mapping[str, list[Option]]:
    """Return the heading of each group and its options."""
    groups: dict[str, list[Option]] = {}
    own = (
        *kafka.OPTIONS,
        *journal_options.OPTIONS,
        *files.OPTIONS,
        *kinesis.OPTIONS,
        *hybrid.OPTIONS,
    )
    for option in (*OPTIONS, *own):
        groups.setdefault(option.group, []).append(option)
    return groups


def page() -> str:
    """Return the page."""
    parts = [head('Options of format("balanced")', ORIGIN, TEXT)]
    for group, found in options().items():
        rows = [(f"`{option.name}`", option.default, option.meaning) for option in found]
        parts.append(f"\n## {group}\n\n" + table(("option", "default", "meaning"), rows))
    return "".join(parts)
