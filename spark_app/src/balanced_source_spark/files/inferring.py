"""The option `inferSchema`: columns come from the files once, and from the state from then on."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from balanced_source.errors import InvalidSpecError
from balanced_source.names import shown
from balanced_source_spark.contract.half import Choices, Query, secrets_in
from balanced_source_spark.contract.option_table import rejected
from balanced_source_spark.files.options import FileReadOptions, ddl_of, files_source

_OPTION: Final = "inferSchema"


def known_ddl(options: Mapping[str, str], read: FileReadOptions) -> str:
    """Return the columns in the enumerator state, or else those of the files. Blocking.

    Raises:
        InvalidSpecError: the columns are given otherwise.
        DiscoveryError: there is nothing to infer from.
        DocumentError: the state cannot be read.
    """
    if read.ddl:
        raise rejected(
            _OPTION,
            f"has no meaning for format {read.kind}, which has one column"
            if "schema" not in options
            else "stands beside schema: set either schema or inferSchema",
        )
    from balanced_source_adapters.files.inference import CsvForm, inferred_ddl
    from balanced_source_adapters.files.stored_schema import stored_ddl

    folder = options.get("statedir")
    if folder and (stored := stored_ddl(Path(folder))):
        return stored
    call = files_source({**options, "statedir": "here"}, is_batch=False).list_page(1, None)
    form = CsvForm(read.header, read.separator, read.quote, read.escape, read.null)
    return inferred_ddl(call, secrets_in(options), form)


def check_inferring(options: Mapping[str, str], choices: Choices) -> None:
    """Check that there is a place for inferred columns.

    Raises:
        InvalidSpecError: there is none.
    """
    if choices.is_part:
        raise rejected(_OPTION, "cannot be set for a part of a hybrid source: set its schema")
    if choices.is_stream and not options.get("statedir"):
        raise rejected(
            _OPTION, "needs the option stateDir for a stream: the columns must stay as they are"
        )


def check_inferred(query: Query[FileReadOptions]) -> None:
    """Check that Spark has the columns that this process has found.

    Each process of a query asks again, and a file may appear in between.

    Raises:
        InvalidSpecError: Spark has others.
    """
    if not query.read.is_inferred or query.schema is None:
        return
    ours = ddl_of(query.read)
    theirs = ", ".join(f"{f.name} {f.dataType.simpleString()}" for f in query.schema)
    if _plain(ours) != _plain(theirs):
        raise other_columns(theirs, ours)


def other_columns(former: str, now: str) -> InvalidSpecError:
    """Return the error of a query whose columns were inferred twice, with different results."""
    return rejected(
        _OPTION,
        f"files appeared while the columns were inferred, which were {shown(former)} before and are"
        f" {shown(now)} now: start the query again",
    )


def _plain(ddl: str) -> str:
    return re.sub(r"[\s`]", "", ddl).lower()
