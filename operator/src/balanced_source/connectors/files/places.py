"""In which store a path lies. Pure."""

import enum
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from balanced_source.connectors.files.settings import Store
from balanced_source.names import shown

_CONTAINER: Final = r"(?P<container>[a-z0-9$][a-z0-9-]*)"
_ABFSS: Final = re.compile(
    rf"abfss://{_CONTAINER}@(?P<account>[a-z0-9]+)\.(?:dfs|blob)\.(?P<suffix>[a-z0-9.-]+)(?:/|$)"
)
_NAME_NODE: Final = re.compile(r"[A-Za-z0-9._-]*(:[0-9]{1,5})?")
"""Empty for the one of Hadoop's own configuration."""

_PUBLIC: Final = "core.windows.net"
"""End of the host names of Azure's public cloud."""


class StoreKind(enum.StrEnum):
    """A kind of store. The value is its name in messages."""

    VOLUME = "local files"
    S3 = "S3"
    GCS = "Google Cloud Storage"
    AZURE = "Azure"
    HDFS = "HDFS"


SCHEMES: Final = {
    "s3://": StoreKind.S3,
    "s3a://": StoreKind.S3,
    "gs://": StoreKind.GCS,
    "az://": StoreKind.AZURE,
    "abfss://": StoreKind.AZURE,
    "hdfs://": StoreKind.HDFS,
}
"""How the URLs of a kind of store begin. Other paths are those of local files."""

_SHORT: Final = {StoreKind.S3: "s3://", StoreKind.GCS: "gs://", StoreKind.AZURE: "az://"}
"""What stands for a kind of store in the settings of readers."""

_SERVED: Final = {StoreKind.AZURE: "Azure accounts", StoreKind.HDFS: "name nodes"}
"""Kinds of stores whose URLs name a server, and how messages call the servers."""


class StorePlace(NamedTuple):
    """Where a path of a store lies.

    Attributes:
        kind: of the store.
        server: host of an Azure account, or ``host:port`` of a name node; empty if the settings of
            the store say it.
        path: as the store names it: ``bucket/key``, or absolute in HDFS.
    """

    kind: StoreKind
    server: str
    path: str


def kind_of(path: str) -> StoreKind:
    """Return the kind of store in which a path lies."""
    scheme, separator, _ = path.partition("://")
    return SCHEMES.get(scheme + separator, StoreKind.VOLUME)


def kind_of_all(paths: Sequence[str]) -> StoreKind:
    """Return the kind of store in which all paths lie.

    Raises:
        ValueError: they lie in several.
    """
    kinds = sorted(set(map(kind_of, paths)))
    if len(kinds) > 1:
        raise ValueError(
            f"names files of several stores ({', '.join(kinds)}): read them as two sources"
        )
    return kinds[0]


def place_of(url: str) -> StorePlace:
    """Return where a URL of a store leads.

    Raises:
        ValueError: it names no bucket, container, account or name node.
    """
    kind = kind_of(url)
    head, _, rest = url.split("://", 1)[1].partition("/")
    if kind is StoreKind.HDFS:
        if not _NAME_NODE.fullmatch(head):
            raise ValueError(f"{shown(url)} names no name node: write hdfs://host:port/path")
        return StorePlace(kind, head, "/" + rest.strip("/"))
    if not url.startswith("abfss://"):
        _check_bucket(url, head)
        return StorePlace(kind, "", f"{head}/{rest}".strip("/"))
    if (match := _ABFSS.match(url)) is None:
        raise ValueError(
            f"{shown(url)} names no container and account: write"
            f" abfss://container@account.dfs.{_PUBLIC}/path"
        )
    container, host = match["container"], f"{match['account']}.blob.{match['suffix']}"
    return StorePlace(kind, host, f"{container}/{rest}".strip("/"))


def _check_bucket(url: str, bucket: str) -> None:
    scheme = url.partition(":")[0]
    if not bucket:
        raise ValueError(f"{shown(url)} names no bucket: write {scheme}://bucket/key")
    if "@" in bucket:
        # Not shown: it may be a password.
        raise ValueError(
            f"the {scheme} URL has credentials before an @, which are not used: write"
            f" {scheme}://bucket/key, and name a Secret"
        )
    if marks := [mark for mark in "*?[{" if mark in bucket]:
        raise ValueError(
            f"{shown(url)} has {marks[0]} in the name of its bucket, which cannot be a pattern:"
            f" name each bucket"
        )


def scheme_of(path: str) -> str:
    """Return what readers must know of the place of a path, besides the settings of the store.

    Empty for local files.
    """
    kind = kind_of(path)
    return f"hdfs://{place_of(path).server}" if kind is StoreKind.HDFS else _SHORT.get(kind, "")


def reached(store: Store, paths: Sequence[str]) -> Store:
    """Return the settings of a store, completed by what its paths say.

    Raises:
        ValueError: the paths lie in several stores, or contradict the settings, or no account is
            named.
    """
    kind = kind_of_all(paths)
    if kind not in _SERVED:
        return store
    own = f"{store.account}.blob.{_PUBLIC}" if store.account else ""
    default = own if kind is StoreKind.AZURE else ""
    servers = sorted({place_of(path).server or default for path in paths})
    if len(servers) > 1:
        raise ValueError(
            f"names several {_SERVED[kind]} ({', '.join(filter(None, servers))}): read them as two"
            " sources"
        )
    return _in_account(store, servers[0]) if kind is StoreKind.AZURE else store


def _in_account(store: Store, host: str) -> Store:
    account = host.partition(".")[0]
    if not account:
        raise ValueError(
            f"names no Azure account: write abfss://container@account.dfs.{_PUBLIC}/path, or set"
            " the account of the store"
        )
    if store.account not in ("", account):
        raise ValueError(
            f"names the Azure account {account}, and the settings of the store name"
            f" {store.account}: leave one of them out"
        )
    return replace(store, account=account, endpoint=store.endpoint or f"https://{host}")
