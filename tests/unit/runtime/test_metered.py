"""Each request to the API server is counted with its verb, its kind and what became of it."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from balanced_source_operator.kube.port import ConflictError, KubernetesError, RefusedError
from balanced_source_operator.resources.kinds import CONFIG_MAP
from balanced_source_operator.runtime.metered import MeteredApi

pytestmark = pytest.mark.asyncio


class Server:
    """Answers each request with the arguments that it got, or with an error."""

    def __init__(self, error: KubernetesError | None = None) -> None:
        self.error = error

    def __getattr__(self, request: str) -> Callable[..., Awaitable[Any]]:
        async def answer(*arguments: Any, **more: Any) -> Any:
            if self.error is not None:
                raise self.error
            return (request, *arguments, more)

        return answer


class Counter:
    """Stands in for the metrics."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, ...]] = []

    def requested(self, *labels: str) -> None:
        self.requests.append(labels)


def metered(error: KubernetesError | None = None) -> tuple[MeteredApi, list[tuple[str, ...]]]:
    counter, server = Counter(), Server(error)
    api: Any = server
    metrics: Any = counter
    return MeteredApi(api, metrics), counter.requests


REQUESTS: dict[str, tuple[str, tuple[Any, ...], dict[str, Any], bool]] = {
    "get": ("get", (CONFIG_MAP, "shop", "a"), {}, True),
    "list": ("list", (CONFIG_MAP, "shop"), {"selector": "x=y"}, True),
    "create": ("create", (CONFIG_MAP, {"a": 1}), {}, True),
    "objection": ("dry-run", (CONFIG_MAP, {"a": 1}), {}, True),
    "replace": ("update", (CONFIG_MAP, {"a": 1}), {}, True),
    "apply": ("apply", (CONFIG_MAP, {"a": 1}), {}, True),
    "patch_status": ("patch-status", (CONFIG_MAP, "shop", "a", {"b": 2}), {}, True),
    "scale": ("scale", (CONFIG_MAP, "shop", "a"), {"before": 1, "after": 2}, False),
    "delete": ("delete", (CONFIG_MAP, "shop", "a"), {"uid": "u"}, False),
}


@pytest.mark.parametrize("request_name", REQUESTS)
async def test_an_answer_is_passed_on_and_counted(request_name: str) -> None:
    verb, arguments, more, has_answer = REQUESTS[request_name]
    api, requests = metered()

    answer = await getattr(api, request_name)(*arguments, **more)

    assert answer == ((request_name, *arguments, more) if has_answer else None)
    assert requests == [(verb, CONFIG_MAP.plural)]


@pytest.mark.parametrize("request_name", REQUESTS)
@pytest.mark.parametrize(
    ("error", "label"),
    [(RefusedError("no", status=403), "403"), (ConflictError("changed"), "Conflict")],
)
async def test_a_failure_is_passed_on_and_counted_by_its_kind(
    request_name: str, error: KubernetesError, label: str
) -> None:
    verb, arguments, more, _ = REQUESTS[request_name]
    api, requests = metered(error)

    with pytest.raises(type(error)):
        await getattr(api, request_name)(*arguments, **more)

    assert requests == [(verb, CONFIG_MAP.plural, label)]
