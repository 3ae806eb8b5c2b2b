"""Stands in for the Kubernetes client library: notes each request, and gives prepared answers."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self


class ApiAnswer:
    """What an API server answers: a manifest as JSON, or any other text."""

    def __init__(self, status: int, content: Any = None) -> None:
        self.status = status
        self._text = content if isinstance(content, str) else json.dumps(content)

    async def text(self) -> str:
        return self._text

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRequest:
    """What was sent.

    Attributes:
        line: method and path.
        query: its parameters.
        body: what is sent as JSON; None for nothing.
        content_type: of the body.
        accept: what may be answered.
        timeout: as the library is told.
    """

    line: str
    query: Mapping[str, str]
    body: Any
    content_type: str | None
    accept: str
    timeout: Any


class AnsweringApi:
    """An `ApiClient`: the answers, in this order; an exception is raised, and the last one stays.

    Attributes:
        requests: all that was sent.
    """

    def __init__(self, *answers: ApiAnswer | Exception) -> None:
        self._answers = list(answers)
        self.requests: list[ApiRequest] = []

    async def call_api(
        self,
        path: str,
        method: str,
        *,
        header_params: Mapping[str, str],
        auth_settings: list[str],
        query_params: list[tuple[str, str]] | None = None,
        body: Any = None,
        _preload_content: bool,
        _request_timeout: Any = None,
    ) -> ApiAnswer:
        assert auth_settings == ["BearerToken"], "the token of the service account is sent"
        assert not _preload_content, "the library does not parse the answer"
        self.requests.append(
            ApiRequest(
                line=f"{method} {path}",
                query=dict(query_params or ()),
                body=body,
                content_type=header_params.get("Content-Type"),
                accept=header_params["Accept"],
                timeout=_request_timeout,
            )
        )
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def refusal(status: int, message: str = "because of this", **details: str) -> ApiAnswer:
    """Return what the API server answers to a request that it refuses."""
    return ApiAnswer(
        status, {"kind": "Status", "code": status, "message": message, "details": details}
    )
