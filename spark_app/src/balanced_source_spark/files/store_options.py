"""Reads the options that say how a store is reached. Keys of the mappings are lower case."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from balanced_source.connectors.files import Store, StoreKind, kind_of_all, reached
from balanced_source.names import checked_object, shown
from balanced_source_spark.contract.option_table import rejected
from balanced_source_spark.contract.values import is_url

_OF: Final = {
    StoreKind.GCS: ("gcsEndpoint", "gcsSecret"),
    StoreKind.AZURE: ("azureAccount", "azureEndpoint", "azureSecret"),
}
"""Options of a kind of store. Those of S3 were never refused elsewhere."""

_ACCOUNT: Final = re.compile(r"[a-z0-9]{3,24}")


def store_settings(options: Mapping[str, str], paths: Sequence[str]) -> Store:
    """Return how the store is reached in which the paths lie.

    Args:
        options: of the query.
        paths: all in stores of one kind.

    Raises:
        InvalidSpecError: names the option.
    """
    kind = kind_of_all(paths)
    for other, names in _OF.items():
        for name in names:
            if name.lower() in options and other is not kind:
                raise rejected(name, f"has no meaning for {kind}: leave it out")
    store = _given(options, kind)
    try:
        return reached(store, paths)
    except ValueError as error:
        raise rejected("path" if "path" in options else "paths", str(error)) from error


def _given(options: Mapping[str, str], kind: StoreKind) -> Store:
    if kind is StoreKind.GCS:
        return Store(
            endpoint=_endpoint(options, "gcsEndpoint"), secret=_secret(options, "gcsSecret")
        )
    if kind is StoreKind.AZURE:
        return Store(
            endpoint=_endpoint(options, "azureEndpoint"),
            secret=_secret(options, "azureSecret"),
            account=_account(options),
        )
    return Store(
        endpoint=_endpoint(options, "s3Endpoint"),
        region=options.get("s3region", ""),
        secret=_secret(options, "s3Secret"),
    )


def _endpoint(options: Mapping[str, str], name: str) -> str:
    endpoint = options.get(name.lower(), "")
    if endpoint and not is_url(endpoint):
        raise rejected(name, f"expected an http or https URL, not {shown(endpoint)}")
    return endpoint


def _secret(options: Mapping[str, str], name: str) -> str | None:
    secret = options.get(name.lower())
    if secret is not None:
        checked_object(secret, field=f"option {name}")
    return secret


def _account(options: Mapping[str, str]) -> str:
    account = options.get("azureaccount", "")
    if account and not _ACCOUNT.fullmatch(account):
        raise rejected(
            "azureAccount", f"expected the name of a storage account, not {shown(account)}"
        )
    return account
