"""Values that Spark reads: amounts of memory and its own version."""

import re
from typing import Annotated, Final

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from balanced_source_operator.contract.base import rule, with_rules

MEMORY: Final = r"^[1-9][0-9]{0,11}[kmgtKMGT]?$"
VERSION: Final = r"^[0-9]{1,4}\.[0-9]{1,4}\.[0-9]{1,4}([-.][0-9A-Za-z]+)*$"
SUPPORTED: Final = "^(4[.]([2-9]|[1-9][0-9]+)|([5-9]|[1-9][0-9]+)[.][0-9]+)[.]"
MIN_MEMORY: Final = 512
"""MiB. Spark does not start with less than 450 MiB."""


def _enough(memory: str) -> str:
    """Spark's unit is MiB unless the text says another one."""
    if memory[-1].isdigit():
        mebibytes = float(memory)
    else:
        mebibytes = (
            int(memory[:-1])
            * {"k": 1 / 1024, "m": 1.0, "g": 1024.0, "t": 1024.0**2}[memory[-1].lower()]
        )
    if mebibytes < MIN_MEMORY:
        raise PydanticCustomError(
            "too_little_memory", "must be at least 512m: Spark does not start with less"
        )
    return memory


Memory = Annotated[str, Field(pattern=MEMORY, max_length=16), AfterValidator(_enough)]

_TOO_OLD: Final = (
    "must be 4.2.0 or newer: older versions lack the data source API that the readers use"
)


def _supported(version: str) -> str:
    if re.match(SUPPORTED, version) is None:
        raise PydanticCustomError(
            "unsupported_version", "{version} is not supported: " + _TOO_OLD, {"version": version}
        )
    return version


SparkVersion = Annotated[
    str,
    Field(
        pattern=VERSION,
        max_length=32,
        json_schema_extra=with_rules(
            rule(f"self.matches('{SUPPORTED}')", f"sparkVersion {_TOO_OLD}")
        ),
    ),
    AfterValidator(_supported),
]
"""Version of Spark in an image."""
