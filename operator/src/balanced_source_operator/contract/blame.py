"""Says which field of a spec the connector is named in that cannot be used, or that fails."""

from collections.abc import Iterator
from contextlib import contextmanager

from balanced_source.errors import BalancedSourceError, ConnectorError, in_short
from balanced_source_adapters.mistakes import is_from_keyboard


@contextmanager
def blamed(kind: str, field: str) -> Iterator[None]:
    """Turn what a connector raises by mistake into a sentence.

    The last valid spec stays in effect then. Its traceback is not logged: errors of models show
    what they were given, and that may be a password.

    Args:
        kind: of the connector.
        field: path of what the user wrote for it.

    Raises:
        ConnectorError: names the connector.
    """
    try:
        yield
    except BalancedSourceError:
        raise
    except BaseException as error:
        if is_from_keyboard(error):
            raise
        raise ConnectorError(
            f"connector {kind!r} failed on {field}: {in_short(error)}. Report this to the authors"
            " of its package",
            field=field,
        ) from error


@contextmanager
def named_in(field: str) -> Iterator[None]:
    """Begin what is said of a connector that cannot be used with the field that names it.

    Args:
        field: path of the name.

    Raises:
        ConnectorError: with the field.
    """
    try:
        yield
    except ConnectorError as error:
        raise ConnectorError(f"{field}: {error}", field=field) from error
