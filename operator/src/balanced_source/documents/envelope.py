"""What every stored document has in common: kind, version, whose it is, and a digest.

The digest does not keep secrets or enemies out; it tells a document that was edited by hand, or
torn, from one that this software wrote, so that nothing is silently trusted.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from balanced_source.api import Json
from balanced_source.errors import CorruptDocumentError, IncompatibleVersionError, in_short
from balanced_source.names import shown

T = TypeVar("T")

MALFORMED: Final = (
    KeyError,
    IndexError,
    TypeError,
    ValueError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)
"""What code raises that reads JSON of another form than it expects."""

MEMBERS: Final = frozenset({"kind", "version", "source", "digest", "body"})
_DIGEST: Final = "digest"


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentKind:
    """A kind of document.

    Attributes:
        name: written into the document, and checked.
        version: newest version; every older one has a reader. What an older one can say may be
            written in that.
        upgrades: readers of old bodies: version → function that turns its body into the next
            version's.
    """

    name: str
    version: int
    upgrades: Mapping[int, Callable[[Json], Json]]


def encode(kind: DocumentKind, source: str, body: Json, *, version: int | None = None) -> str:
    """The document as one line of JSON.

    Args:
        kind: what it is.
        source: uid of the BalancedSource that it belongs to; a document of another one is refused.
        body: JSON without secrets.
        version: whose body this is; None: the newest.
    """
    content = {
        "kind": kind.name,
        "version": version or kind.version,
        "source": source,
        "body": body,
    }
    members = {name: canonical(value) for name, value in content.items()}
    return _joined({**members, _DIGEST: canonical(_hash(_joined(members)))})


def decode(kind: DocumentKind, text: str, *, source: str | None = None) -> Json:
    """The body of a document, upgraded to the current version.

    Raises:
        CorruptDocumentError: no JSON, another kind, another source, or changed since it was
            written.
        IncompatibleVersionError: written by newer software.
    """
    content = _parse(kind, text)
    written = content.pop(_DIGEST)
    version = content["version"]
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise CorruptDocumentError(f"{kind.name}: {shown(repr(version))} is not a valid version")
    if version > kind.version:
        raise IncompatibleVersionError(kind.name, found=version, supported=kind.version)
    if not _is_untouched(text, written, content):
        raise CorruptDocumentError(
            f"{kind.name}: changed by another program since it was written (digest differs)"
        )
    # A source that was created again under the same name must not continue from its predecessor's
    # documents.
    if source is not None and content["source"] != source:
        raise CorruptDocumentError(
            f"{kind.name}: belongs to source {_plain(content['source'])}, not to {source}"
        )
    return upgraded(kind, content["body"], version)


def upgraded(kind: DocumentKind, body: Json, version: int) -> Json:
    """A body of `version` as one of the current version."""
    try:
        for older in range(version, kind.version):
            body = kind.upgrades[older](body)
    except MALFORMED as error:
        raise CorruptDocumentError(
            f"{kind.name}: malformed body of version {version}: {_named(error)}"
        ) from error
    return body


def parse_body(kind: DocumentKind, body: Json, build: Callable[[Any], T]) -> T:
    """Build a value from a body.

    Whatever does not fit is a corrupt document, never a stray KeyError.
    """
    try:
        return build(body)
    except MALFORMED as error:
        raise CorruptDocumentError(f"{kind.name}: malformed body: {_named(error)}") from error


def _plain(value: Json) -> str:
    """Text of a document in a message.

    As it is, unless it has characters that a log should not have.
    """
    text = shown(str(value))
    return text[1:-1] if text[1:-1] == str(value) else text


def _named(error: Exception) -> str:
    """An error of Python in a message: short, whatever it quotes."""
    return shown(in_short(error))


def canonical(value: Json) -> str:
    """JSON with sorted keys and no spaces: equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest(content: Mapping[str, Json]) -> str:
    """Of equal content, always the same short text."""
    return _hash(canonical(content))


def _is_untouched(text: str, written: Json, content: Mapping[str, Json]) -> bool:
    try:
        # By its text or by its content: the same JSON may be written with other spaces.
        return bool(written == _hash(_without_digest(text, written)) or written == digest(content))
    except (ValueError, RecursionError):
        # half of a character, or too deep: we have not written that
        return False


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _joined(members: Mapping[str, str]) -> str:
    """What `canonical` makes of an object whose members are `canonical` already.

    A large body is written once.
    """
    return (
        "{" + ",".join(f"{canonical(name)}:{text}" for name, text in sorted(members.items())) + "}"
    )


def _without_digest(text: str, written: Json) -> str:
    """What the digest was made of, if the text is as `encode` wrote it."""
    before, _, after = text.rpartition(f"{canonical(_DIGEST)}:{canonical(written)},")
    return before + after


def _parse(kind: DocumentKind, text: str) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CorruptDocumentError(f"{kind.name}: not JSON: {_named(error)}") from error
    if not isinstance(content, dict) or set(content) != MEMBERS or content["kind"] != kind.name:
        raise CorruptDocumentError(f"{kind.name}: not a document of this kind")
    return content
