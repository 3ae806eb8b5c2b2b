"""How a document becomes named blobs of limited size, and back.

What ConfigMaps and folders have in common.

Small documents stay readable (``kubectl get configmap orders-assignment -o yaml``); larger ones are
compressed.
"""

import base64
import bz2
import hashlib
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

from balanced_source.errors import CorruptDocumentError, StateError

T = TypeVar("T")

PLAIN_KEY: Final = "document.json"
PACKED_KEY: Final = "document.json.bz2"
FORMER_PACKED_KEY: Final = "document.json.gz"
"""Where earlier versions stored what they compressed; it is still read."""

_GZIP: Final = b"\x1f\x8b"

PLAIN_LIMIT: Final = 64 * 1024
"""Bytes up to which a document is stored as plain text."""

MAX_DOCUMENT: Final = 256 << 20
"""Bytes of a document before compression; a million splits need less than half of it."""

BLOB_LIMIT: Final = 1_000_000
"""Bytes that fit into one ConfigMap, with room for its metadata below the limit of 1 MiB."""


FIRST_HOST: Final = "0"
"""Name of the host whose objects are named after the source alone."""


def in_host_order(hosts: Mapping[str, T]) -> dict[str, T]:
    """Return the hosts sorted by their numbers, 2 before 10.

    Readers are dealt to hosts in this order. A document does not keep the order of a mapping, so
    the operator and each driver must sort in the same way.
    """
    return dict(sorted(hosts.items(), key=lambda item: (len(item[0]), item[0])))


def base_of(source: str, host: str = FIRST_HOST, *, uid: str = "") -> str:
    """Return what the names of a host's objects begin with.

    For `orders` and host 2, such as ``orders-h2-5b1f7c``.

    The suffix of a further host depends on the source's uid, so it is not a name that another
    source has by chance.
    """
    if host == FIRST_HOST:
        return source
    token = hashlib.sha256(f"{uid}/{host}".encode()).hexdigest()[:6]
    return f"{source}-h{host}-{token}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Names of a source's documents; each has one writer.

    Attributes:
        state: enumerator state; written by the operator.
        assignment: written by the operator, read by drivers.
        readers: report; written by the driver, read by the operator.
    """

    state: str
    assignment: str
    readers: str

    @classmethod
    def of(cls, source: str, host: str = FIRST_HOST, *, uid: str = "") -> "Names":
        """Names for a host of the BalancedSource called `source`.

        The state is one for all hosts.
        """
        base = base_of(source, host, uid=uid)
        return cls(
            state=f"{source}-enumerator", assignment=f"{base}-assignment", readers=f"{base}-readers"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    """Content of one ConfigMap.

    Attributes:
        data: text by key.
        binary: bytes by key, in base64.
    """

    data: Mapping[str, str] = field(default_factory=dict)
    binary: Mapping[str, str] = field(default_factory=dict)


def pack(document: str) -> Blob:
    """Content that holds a document.

    Raises:
        StateError: it does not fit, even compressed.
    """
    raw = document.encode()
    if len(raw) <= PLAIN_LIMIT:
        return Blob(data={PLAIN_KEY: document})
    packed = compress(document)
    if len(packed) > BLOB_LIMIT:
        raise StateError(
            f"a document of {len(packed)} bytes (compressed) does not fit: {BLOB_LIMIT} is the"
            " limit"
        )
    return Blob(binary={PACKED_KEY: base64.b64encode(packed).decode()})


def compress(document: str) -> bytes:
    """The document compressed; equal documents give equal bytes.

    Its tables name the same topics again and again, further apart than gzip's window of 32 KiB:
    bzip2 makes a tenth to a third less of them.
    """
    return bz2.compress(document.encode(), compresslevel=9)


def decompress(packed: bytes) -> str:
    """Inverse of `compress`; reads also what earlier versions compressed by gzip.

    Raises:
        CorruptDocumentError: it is neither, or incomplete.
    """
    try:
        return _bounded(packed).decode()
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise CorruptDocumentError(f"it does not decompress: {error}") from error


def _bounded(packed: bytes) -> bytes:
    """Decompress a file, which may become a thousand or, by malice, a million times as large."""
    raw = b""
    while packed:
        unpacker = (
            zlib.decompressobj(wbits=31) if packed.startswith(_GZIP) else bz2.BZ2Decompressor()
        )
        # One byte more than is allowed, so that a document of exactly the limit is told from a
        # larger one.
        raw += unpacker.decompress(packed, MAX_DOCUMENT - len(raw) + 1)
        if len(raw) > MAX_DOCUMENT:
            raise ValueError(f"it has more than {MAX_DOCUMENT} bytes")
        if not unpacker.eof:
            raise EOFError("its end is missing")
        # A compressed file may consist of several, one behind the other.
        packed = unpacker.unused_data
    return raw


def unpack(blob: Blob) -> str:
    """The document in a blob.

    Raises:
        CorruptDocumentError: there is none, or it does not decompress.
    """
    if (text := blob.data.get(PLAIN_KEY)) is not None:
        return text
    packed = packed_in(blob)
    if packed is None:
        raise CorruptDocumentError(f"neither {PLAIN_KEY} nor {PACKED_KEY} is there")
    try:
        return decompress(base64.b64decode(packed))
    except ValueError as error:
        raise CorruptDocumentError(f"the compressed document is not in base64: {error}") from error


def packed_in(blob: Blob) -> str | None:
    """The compressed document of a blob, in base64, whichever version wrote it.

    None if there is none.
    """
    return blob.binary.get(PACKED_KEY, blob.binary.get(FORMER_PACKED_KEY))
