"""Columns that were inferred when a query began, as its enumerator state keeps them."""

from pathlib import Path

from balanced_source.connectors.files import schema_of
from balanced_source.coordinator import state_codec
from balanced_source.documents import envelope
from balanced_source_adapters.folder import read_text, state_path


def stored_ddl(folder: Path) -> str:
    """Return the columns in the enumerator state of a folder; empty if there are none yet.

    Raises:
        CorruptDocumentError, IncompatibleVersionError: see `envelope.decode`.
    """
    if (text := read_text(state_path(folder))) is None:
        return ""
    body = envelope.decode(state_codec.KIND, text)
    # `get`: the state of another connector is refused where it is restored, with better words.
    return schema_of(body["enumerator"]["state"].get("cursor"))
