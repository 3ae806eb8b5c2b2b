"""The columns in a DDL text. Spark parses the types; here only names and commas count."""

from collections.abc import Collection

from balanced_source.names import shown
from balanced_source_spark.contract.option_table import rejected

_OPEN = "<(["
_CLOSE = ">)]"


def columns_of(ddl: str) -> list[tuple[str, str]]:
    """Return the name and the text of each column."""
    return [(_name(text), text) for text in map(str.strip, _parts(ddl)) if text]


def selected(ddl: str, columns: Collection[str]) -> str:
    """Return the DDL of some columns, in the order of the DDL.

    Raises:
        InvalidSpecError: a column is missing there.
    """
    known = columns_of(ddl)
    names = [name for name, _ in known]
    if missing := [name for name in columns if name not in names]:
        raise rejected(
            "columns",
            f"{shown(missing[0])} is not a column of schema: there are {', '.join(names)}",
        )
    return ", ".join(text for name, text in known if name in columns)


def _parts(ddl: str) -> list[str]:
    """Return the texts between commas that are in no bracket, quote or backtick."""
    parts, depth, quote = [""], 0, ""
    for character in ddl:
        if quote:
            quote = "" if character == quote else quote
        elif character in "`'\"":
            quote = character
        elif character in _OPEN:
            depth += 1
        elif character in _CLOSE:
            depth -= 1
        elif character == "," and depth == 0:
            parts.append("")
            continue
        parts[-1] += character
    return parts


def _name(column: str) -> str:
    if column.startswith("`"):
        return column[1:].split("`", 1)[0]
    return column.replace(":", " ").split()[0]
