"""Prints the options that a connector declares: ``python -m balanced_source_spark.option_list``.

As JSON: group → options with name, default and meaning; null if the connector names none. The
command ``balanced-source reference`` runs it, because the operator's side never loads Spark's.
"""

import json
import sys
from collections.abc import Mapping, Sequence

from balanced_source.errors import BalancedSourceError
from balanced_source_spark.contract.half import SparkHalf, half_of
from balanced_source_spark.contract.half_answers import asked
from balanced_source_spark.contract.option_table import Option
from balanced_source_spark.journal_options import OPTIONS as JOURNAL_OPTIONS


def options_of(kind: str) -> Mapping[str, Sequence[Mapping[str, str]]] | None:
    """Return the options of a connector by their group; None if it does not name them.

    Raises:
        ConnectorError: there is no such connector, or it is broken.
    """
    half = half_of(kind)
    own: Sequence[Option] | None = asked(kind, half, "options")
    if own is None:
        return None
    groups: dict[str, list[Mapping[str, str]]] = {}
    for option in (*own, *(() if isinstance(half, SparkHalf) else JOURNAL_OPTIONS)):
        default = option.default or ("required" if option.is_required else "")
        shown = {"name": option.name, "default": default, "meaning": option.meaning}
        groups.setdefault(option.group, []).append(shown)
    return groups


def main(kind: str) -> int:
    """Print them; return the exit code."""
    try:
        found = options_of(kind)
    except BalancedSourceError as error:
        sys.stderr.write(f"{' '.join(str(error).split())}\n")
        return 1
    sys.stdout.write(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
