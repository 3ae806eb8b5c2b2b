"""Azure Blob Storage and Data Lake Storage."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from balanced_source.api import SecretReader
from balanced_source.connectors.files import Store
from balanced_source.errors import RefusedDiscoveryError
from balanced_source_adapters.files.cloud import CloudStore, client_of, malformed
from balanced_source_adapters.files.file_store import keys_of

_WAYS: Final[Mapping[tuple[str, ...], tuple[str, Mapping[str, str]]]] = {
    ("accountKey",): ("access_key", {"accountKey": "account_key"}),
    ("sasToken",): ("sas_token", {"sasToken": "sas_key"}),
    ("tenantId", "clientId", "clientSecret"): (
        "client_secret",
        {"tenantId": "tenant_id", "clientId": "client_id", "clientSecret": "client_secret"},
    ),
}
"""Keys of a Secret → the client's name of this way to authenticate, and of its options."""


def azure_store(store: Store, secrets: SecretReader) -> CloudStore:
    """Return the objects of an account.

    Raises:
        RefusedDiscoveryError: the Secret is missing, or lacks a key; or the client is not
            installed.
    """
    options = {
        "account_name": store.account,
        "endpoint": _endpoint(store),
        **_credentials(store.secret, secrets),
    }
    secret = f"Secret {store.secret}" if store.secret else None
    client = client_of("AzureStore", options, otherwise=malformed(secret, "AZURE_"))
    # Not every kind of account starts a listing after a name.
    return CloudStore("az://", client, is_ordered=False)


def _endpoint(store: Store) -> str:
    """Return the URL below which containers lie.

    Where the host does not name the account, the path does, as with emulators.
    """
    host = urlsplit(store.endpoint).hostname or ""
    is_named = host.partition(".")[0] == store.account
    return store.endpoint if is_named else f"{store.endpoint}/{store.account}"


def _credentials(name: str | None, secrets: SecretReader) -> dict[str, str]:
    """Return the credentials in a Secret; none without a Secret."""
    if name is None:
        return {}
    keys = keys_of(name, secrets)
    ways = [way for way in _WAYS if any(key in keys for key in way)]
    if len(ways) != 1:
        every = "; ".join(", ".join(way) for way in _WAYS)
        raise RefusedDiscoveryError(
            f"Secret {name} must have the keys of exactly one of these: {every}", scope="files"
        )
    if missing := [key for key in ways[0] if key not in keys]:
        raise RefusedDiscoveryError(
            f"Secret {name} has no key {', '.join(missing)}: add it", scope="files"
        )
    kind, names = _WAYS[ways[0]]
    # Otherwise variables of the environment could win over the Secret.
    fixed = {"credential_type": kind, "skip_signature": "false", "use_emulator": "false"}
    return {**fixed, **{option: keys[key] for key, option in names.items()}}
