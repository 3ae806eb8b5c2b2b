"""Options and settings that are secrets.

Read from mounted files, so that no object of the API server holds them.
"""

from collections.abc import Iterable
from pathlib import Path

from balanced_source.documents.environment import DriverEnvironment
from balanced_source.documents.pipeline import Sink
from balanced_source.errors import InvalidSpecError
from balanced_source.sinks import check_options
from balanced_source_adapters.mounted_secrets import MountedSecrets


def sink_options(sink: Sink, environment: DriverEnvironment) -> dict[str, str]:
    """Returns the options of the sink; those in Secrets win, later ones over earlier ones.

    Raises:
        InvalidSpecError: a Secret is missing or empty. Never holds a value.
    """
    found = _read(sink.secrets, environment, field="spec.application.pipeline.sink.optionsFrom")
    return {**sink.options, **found}


def check_sink(sink: Sink, environment: DriverEnvironment) -> None:
    """Check that the sink has the option that its format cannot do without.

    Raises:
        InvalidSpecError: it has not, or a Secret is missing or empty. Never holds a value.
    """
    check_options(sink.format, sink_options(sink, environment))


def secret_settings(environment: DriverEnvironment) -> dict[str, str]:
    """Returns the Spark settings in Secrets, to be applied before the session is created.

    Raises:
        InvalidSpecError: a Secret is missing, or a key is no Spark setting. Never holds a value.
    """
    field = "spec.application.sparkConfFrom"
    found = _read(environment.conf_secrets, environment, field=field)
    if others := sorted(key for key in found if not key.startswith("spark.")):
        raise InvalidSpecError(f"{others[0]} is not a Spark setting: name it spark.…", field=field)
    return found


def _read(names: Iterable[str], environment: DriverEnvironment, *, field: str) -> dict[str, str]:
    folder = environment.secrets_dir
    secrets, found = MountedSecrets(Path(folder) if folder else None), dict[str, str]()
    try:
        for name in names:
            found |= secrets.read(name)
    except LookupError as error:
        raise InvalidSpecError(str(error), field=field) from error
    return found
