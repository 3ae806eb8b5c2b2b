"""Calls that the operator asks a driver to make, and the driver's answers.

A call stands in the assignment until its answer has come; the answer stands in the report until the
call is gone. A large result is cut into pages, which the operator requests in turn.
A page belongs to one result: another driver, or a second attempt, may list something else.
"""

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from balanced_source.api import Json
from balanced_source.documents.storage import compress, decompress
from balanced_source.errors import CorruptDocumentError, StateError

PAGE: Final = 256 * 1024
"""Characters of one page. A report holds one page per call, at most two pages in all."""

MAX_PAGES: Final = 64
"""Pages of one result. A million names of files need about half of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedCall:
    """A call that the operator waits for.

    Attributes:
        id: names the attempt; one of another operator process, or a later one, has another id.
        call: as the connector's codec writes it; nothing secret.
        page: number of the page that is asked for.
    """

    id: str
    call: Json
    page: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CallError:
    """Why a call failed.

    Attributes:
        message: for people; nothing secret.
        reason: CamelCase word for a condition.
        scope: part of the source that failed.
        is_refused: whether someone has to act first.
    """

    message: str
    reason: str
    scope: str = ""
    is_refused: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CallAnswer:
    """One page of a call's result, or why there is none.

    Attributes:
        id: of the call.
        digest: of the whole result; pages with another digest belong to another result.
        page: number of this page.
        pages: how many there are.
        data: the page.
        error: None if the call succeeded.
    """

    id: str
    digest: str = ""
    page: int = 0
    pages: int = 1
    data: str = ""
    error: CallError | None = None


def cut(result: Json) -> tuple[str, tuple[str, ...]]:
    """Return the digest and the pages of a result.

    Raises:
        StateError: it is too large.
    """
    packed = compress(json.dumps(result, separators=(",", ":")))
    text = base64.b64encode(packed).decode()
    pages = tuple(text[at : at + PAGE] for at in range(0, len(text), PAGE))
    if len(pages) > MAX_PAGES:
        raise StateError(
            f"its {len(text)} bytes (compressed) are too many: {MAX_PAGES * PAGE} is the limit"
        )
    return _digest(text), pages


def joined(pages: Sequence[str], digest: str) -> Json:
    """Return the result that was cut into these pages.

    Raises:
        CorruptDocumentError: they do not belong together.
    """
    text = "".join(pages)
    if _digest(text) != digest:
        raise CorruptDocumentError("the pages of an answer do not belong together")
    try:
        return json.loads(decompress(base64.b64decode(text, validate=True)))
    except ValueError as error:
        raise CorruptDocumentError(f"an answer is malformed: {error}") from error


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def encode_calls(calls: Sequence[WantedCall]) -> list[Json]:
    """Return calls as JSON."""
    return [{"id": call.id, "call": call.call, "page": call.page} for call in calls]


def decode_calls(data: Sequence[Any]) -> tuple[WantedCall, ...]:
    """Inverse of `encode_calls`."""
    return tuple(
        WantedCall(id=str(call["id"]), call=call["call"], page=int(call["page"])) for call in data
    )


def encode_answers(answers: Sequence[CallAnswer]) -> list[Json]:
    """Return answers as JSON."""
    return [
        {
            "id": answer.id,
            "digest": answer.digest,
            "page": answer.page,
            "pages": answer.pages,
            "data": answer.data,
            **({"error": _error_to_json(answer.error)} if answer.error is not None else {}),
        }
        for answer in answers
    ]


def decode_answers(data: Sequence[Any]) -> tuple[CallAnswer, ...]:
    """Inverse of `encode_answers`."""
    return tuple(
        CallAnswer(
            id=str(answer["id"]),
            digest=str(answer["digest"]),
            page=int(answer["page"]),
            pages=int(answer["pages"]),
            data=str(answer["data"]),
            error=_error_from_json(answer["error"]) if "error" in answer else None,
        )
        for answer in data
    )


def _error_to_json(error: CallError) -> Json:
    return {
        "message": error.message,
        "reason": error.reason,
        "scope": error.scope,
        "isRefused": error.is_refused,
    }


def _error_from_json(data: Any) -> CallError:
    return CallError(
        message=str(data["message"]),
        reason=str(data["reason"]),
        scope=str(data["scope"]),
        is_refused=bool(data["isRefused"]),
    )
