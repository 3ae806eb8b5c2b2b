"""Options and settings that are secrets: read from mounted files, so that no object of the API server holds them."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from balanced_source.errors import InvalidSpecError
from balanced_source_adapters.mounted_secrets import MountedSecrets

SECRETS_DIR: Final = "BALANCED_SOURCE_SECRETS_DIR"
CONF_SECRETS: Final = "BALANCED_SOURCE_CONF_SECRETS"
"""Environment variables of the driver: where Secrets are mounted, and which of them hold Spark settings."""


def sink_options(pipeline: Mapping[str, Any], environment: Mapping[str, str]) -> dict[str, str]:
    """Returns the options of the sink; those in Secrets win, later ones over earlier ones.

    Raises:
        InvalidSpecError: a Secret is missing or empty. Never holds a value.
    """
    sink = pipeline["sink"]
    names = [source["secretRef"]["name"] for source in sink.get("optionsFrom", ())]
    found = _read(names, environment, field="spec.application.pipeline.sink.optionsFrom")
    return {**sink.get("options", {}), **found}


def secret_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Returns the Spark settings in Secrets, to be applied before the session is created.

    Raises:
        InvalidSpecError: a Secret is missing, or a key is no Spark setting. Never holds a value.
    """
    field = "spec.application.sparkConfFrom"
    names = [name for name in environment.get(CONF_SECRETS, "").split(",") if name]
    found = _read(names, environment, field=field)
    if others := sorted(key for key in found if not key.startswith("spark.")):
        raise InvalidSpecError(f"{others[0]} is not a Spark setting: name it spark.…", field=field)
    return found


def _read(names: Iterable[str], environment: Mapping[str, str], *, field: str) -> dict[str, str]:
    folder = environment.get(SECRETS_DIR)
    secrets, found = MountedSecrets(Path(folder) if folder else None), dict[str, str]()
    try:
        for name in names:
            found |= secrets.read(name)
    except LookupError as error:
        raise InvalidSpecError(str(error), field=field) from error
    return found
