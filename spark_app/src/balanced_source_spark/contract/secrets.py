"""The secrets of a query: options that no one may see, and files in a folder."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from balanced_source_adapters.mounted_secrets import MountedSecrets, texts
from balanced_source_spark.contract.option_table import rejected

GIVEN: Final = "(options)"
"""Stands for the options of the query among the names of Secrets; no Secret can have it."""

WHOLE_FOLDER: Final = "(secretsDir)"
"""Stands for everything in the folder; no Secret can have it."""

_REFERENCE: Final = re.compile(r"\$\{env:([A-Za-z_][A-Za-z0-9_]*)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class QuerySecrets:
    """A `SecretReader` for all processes of a query. Tasks unpickle it; its text shows no value.

    Attributes:
        folder: with one folder per Secret, with a file per property; None if there is none.
        given: names and values of properties from the options.
        token_provider: ``module:function`` that returns tokens; empty if there is none.
        apart: names of Secrets that do not belong to the whole folder, because a part of a hybrid
            source names them.
    """

    folder: Path | None = None
    given: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    token_provider: str = ""
    apart: frozenset[str] = frozenset()

    @property
    def are_in_options(self) -> bool:
        """Whether there are some besides those in the folder."""
        return bool(self.given or self.token_provider)

    def read(self, name: str) -> Mapping[str, str]:
        """Return the properties of a Secret, of the options, or of the whole folder.

        Raises:
            LookupError: it is not there, or empty.
        """
        if name == GIVEN:
            return dict(self.given)
        if name == WHOLE_FOLDER:
            return self._everything()
        return MountedSecrets(self.folder).read(name)

    def _everything(self) -> Mapping[str, str]:
        """Return the properties in files of the folder, and in files of its folders."""
        if self.folder is None or not self.folder.is_dir():
            raise LookupError(
                f"the folder {self.folder} of the option secretsDir does not exist on this machine"
            )
        visible = sorted(path for path in self.folder.iterdir() if not path.name.startswith("."))
        found = texts({path.name: path.read_bytes() for path in visible if path.is_file()})
        for path in visible:
            if path.is_dir() and path.name not in self.apart:
                found |= MountedSecrets(self.folder).read(path.name)
        if not (found or self.apart):
            raise LookupError(
                f"the folder {self.folder} of the option secretsDir is empty: it needs a file per"
                " property"
            )
        return found


NO_SECRETS: Final = QuerySecrets()
"""Of a query without any."""


def has_reference(value: str) -> bool:
    """Return whether an option's value refers to an environment variable, ``${env:NAME}``."""
    return _REFERENCE.search(value) is not None


def resolved(name: str, value: str, environment: Mapping[str, str] = os.environ) -> str:
    """Return the value of an option, with the values of the environment variables it names.

    Args:
        name: of the option.
        value: the text, which may hold ``${env:NAME}`` anywhere.
        environment: of the driver.

    Raises:
        InvalidSpecError: a variable is not set.
    """

    def found(match: re.Match[str]) -> str:
        if (text := environment.get(match[1])) is None:
            raise rejected(
                name,
                f"the environment variable {match[1]} is not set in Spark's driver: set it before"
                " Spark starts",
            )
        return text

    return _REFERENCE.sub(found, value)
