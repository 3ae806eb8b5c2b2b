"""Google Cloud Storage."""

import json
import os
from collections.abc import Mapping
from typing import Final

from balanced_source.api import SecretReader
from balanced_source.connectors.files import Store
from balanced_source.errors import RefusedDiscoveryError
from balanced_source_adapters.files.cloud import CloudStore, client_of, malformed
from balanced_source_adapters.files.file_store import keys_of

_KEY: Final = "serviceAccount"
_MEMBERS: Final = ("client_email", "private_key", "private_key_id")
"""Of a key: others could name another server, or turn authentication off."""

_RIVALS: Final = (
    "SERVICE_ACCOUNT",
    "GOOGLE_SERVICE_ACCOUNT",
    "GOOGLE_SERVICE_ACCOUNT_PATH",
    "GOOGLE_BEARER_TOKEN",
)
"""Variables that the client reads although a key is given."""


def gcs_store(store: Store, secrets: SecretReader) -> CloudStore:
    """Return the objects of a store.

    Raises:
        RefusedDiscoveryError: the Secret is missing, or holds no key; or the client is not
            installed.
    """
    endpoint = {"base_url": store.endpoint} if store.endpoint else {}
    options = {**endpoint, **_credentials(store.secret, secrets)}
    secret = f"{_KEY} of Secret {store.secret}" if store.secret else None
    client = client_of("GCSStore", options, otherwise=malformed(secret, "GOOGLE_"))
    return CloudStore("gs://", client, is_ordered=True)  # listings start after any name


def _credentials(name: str | None, secrets: SecretReader) -> dict[str, str]:
    """Return the credentials in a Secret; none without a Secret."""
    if name is None:
        return {}
    keys = keys_of(name, secrets)
    if rivals := [rival for rival in _RIVALS if rival in os.environ]:
        raise RefusedDiscoveryError(
            f"the variable {rivals[0]} of this process stands beside Secret {name}: remove the"
            " variable, or name no Secret",
            scope="files",
        )
    return {"service_account_key": _key(name, keys), "skip_signature": "false"}


def _key(name: str, keys: Mapping[str, str]) -> str:
    if _KEY not in keys:
        raise RefusedDiscoveryError(f"Secret {name} has no key {_KEY}: add it", scope="files")
    try:
        found = json.loads(keys[_KEY])
        return json.dumps({member: str(found[member]) for member in _MEMBERS})
    except (ValueError, KeyError, TypeError):
        # Without the cause, which may quote the key.
        raise RefusedDiscoveryError(
            f"{_KEY} of Secret {name} is not the JSON of a service account key, with"
            f" {', '.join(_MEMBERS)}: create a key of type JSON, and store all of it",
            scope="files",
        ) from None
