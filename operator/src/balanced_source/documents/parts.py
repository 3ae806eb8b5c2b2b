"""Documents that do not fit into one ConfigMap: numbered parts beside the head that names them.

Parts have fixed names, so that a role can name them (``resourceNames``); what is in them is known
by its digest. A writer fills parts that the stored head does not name, then replaces the head:
a process that reads head first and parts after finds either what the head promises, or a part whose
digest differs, and reads the head again.
"""

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from balanced_source.documents import storage
from balanced_source.documents.storage import (
    PLAIN_KEY,
    Blob,
    compress,
    decompress,
    pack,
    packed_in,
    unpack,
)
from balanced_source.errors import CorruptDocumentError, StateError

PARTS_KEY: Final = "parts.json"
"""In a head: number and digest of each part, in order."""

PART_KEY: Final = "part"
"""In a part: its bytes."""

PARTS: Final = 16
"""Names for parts per document.

Half of them hold a document, the other half the one that follows it.
"""


@dataclass(frozen=True, slots=True)
class Content:
    """What is stored under one name.

    Attributes:
        document: the document.
        base: a larger one that `document` builds upon, if it is an increment.
    """

    document: str
    base: str | None = None


@dataclass(frozen=True, slots=True)
class PartRef:
    """A part as a head names it."""

    number: int
    digest: str


@dataclass(frozen=True, slots=True)
class Part:
    """Bytes of a part."""

    digest: str
    data: bytes

    @property
    def blob(self) -> Blob:
        """Content of the part's ConfigMap."""
        return Blob(binary={PART_KEY: base64.b64encode(self.data).decode()})


def part_names(document: str) -> tuple[str, ...]:
    """Names of all parts that the document of this name may have."""
    return tuple(f"{document}-{number}" for number in range(PARTS))


def lay_out(content: Content) -> tuple[Blob, tuple[Part, ...]]:
    """The head, still without its parts, and the parts: none if everything fits into the head."""
    # The increment stays in the head: it changes with each epoch, and the parts seldom.
    if content.base is not None:
        return pack(content.document), cut(content.base)
    try:
        return pack(content.document), ()
    except StateError:
        return Blob(), cut(content.document)


def cut(document: str) -> tuple[Part, ...]:
    """Parts that hold a document."""
    packed, size = compress(document), storage.BLOB_LIMIT
    return tuple(
        Part(_digest(packed[at : at + size]), packed[at : at + size])
        for at in range(0, len(packed), size)
    )


def allocate(
    parts: Sequence[Part], named: Sequence[PartRef], written: Sequence[PartRef] = ()
) -> tuple[PartRef, ...]:
    """Where the parts go.

    One that is there already stays where it is, the others take numbers that are not in use.

    The number that was given back last is taken last, for readers that are late.

    Args:
        parts: of the document.
        named: parts that the stored head names; they are not touched.
        written: parts that were written for a head that has not been stored.

    Raises:
        StateError: there are too many parts.
    """
    wanted = {part.digest for part in parts}
    # What is stored already need not be written again, also after an attempt that failed.
    known = {ref.digest: ref.number for ref in (*written, *named) if ref.digest in wanted}
    used, last = (
        {*known.values(), *(ref.number for ref in named)},
        max((ref.number for ref in named), default=-1),
    )
    # After the newest number first: a late reader may still read the parts of the former head.
    free = [n for i in range(PARTS) if (n := (last + 1 + i) % PARTS) not in used]
    fresh = [part for part in parts if part.digest not in known]
    # One half holds the stored document, so the next one has the other half.
    if len(fresh) > len(free) or len(parts) > PARTS // 2:
        size = sum(len(part.data) for part in parts)
        raise StateError(
            f"a document of {size} bytes (compressed) does not fit into {PARTS // 2} parts"
        )
    numbers = {**known, **{part.digest: number for part, number in zip(fresh, free, strict=False)}}
    return tuple(PartRef(numbers[part.digest], part.digest) for part in parts)


def with_parts(head: Blob, refs: Sequence[PartRef]) -> Blob:
    """The head with the parts that it needs."""
    if not refs:
        return head
    listed = json.dumps([[ref.number, ref.digest] for ref in refs], separators=(",", ":"))
    return replace(head, data={**head.data, PARTS_KEY: listed})


def parts_of(head: Blob) -> tuple[PartRef, ...]:
    """The parts that a head names, in order.

    Raises:
        CorruptDocumentError: the list is malformed.
    """
    text = head.data.get(PARTS_KEY)
    if text is None:
        return ()
    try:
        return tuple(PartRef(int(number), str(digest)) for number, digest in json.loads(text))
    except (ValueError, TypeError) as error:
        raise CorruptDocumentError(f"{PARTS_KEY} is malformed: {error}") from error


def is_part(blob: Blob, ref: PartRef) -> bool:
    """Whether a part holds what the head says."""
    return _part_data(blob, ref) is not None


def assemble(head: Blob, parts: Sequence[Blob]) -> Content:
    """What head and parts hold; `parts` in the order of `parts_of`.

    Raises:
        CorruptDocumentError: something is missing or does not match.
    """
    refs = parts_of(head)
    if not refs:
        return Content(unpack(head))
    joined = join(refs, parts)
    # A head with parts and a document of its own is an increment, and the parts are its base.
    has_document = PLAIN_KEY in head.data or packed_in(head) is not None
    return Content(unpack(head), joined) if has_document else Content(joined)


def join(refs: Sequence[PartRef], parts: Sequence[Blob]) -> str:
    """The document in parts.

    Raises:
        CorruptDocumentError: a part is not what its digest says.
    """
    packed = b""
    for ref, blob in zip(refs, parts, strict=True):
        data = _part_data(blob, ref)
        if data is None:
            raise CorruptDocumentError(f"part {ref.number} is not the one that the head names")
        packed += data
    return decompress(packed)


def _part_data(blob: Blob, ref: PartRef) -> bytes | None:
    try:
        data = base64.b64decode(blob.binary.get(PART_KEY, ""), validate=True)
    except ValueError:
        return None
    return data if _digest(data) == ref.digest else None


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]
