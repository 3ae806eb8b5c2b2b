"""Lists and watches of a whole kind: what is sent, and the pages of a list, without a network."""

import asyncio
from typing import Any

import aiohttp
import pytest

from balanced_source_operator.kube.port import KubernetesError, RefusedError, UnknownKindError
from balanced_source_operator.kube.stream import ExpiredError, KubernetesStream, ListPage
from balanced_source_operator.resources.kinds import CONFIG_MAP
from support.answering_api import AnsweringApi, ApiAnswer, refusal


def page(*names: str, more: str = "") -> ApiAnswer:
    metadata = {"resourceVersion": "7", **({"continue": more} if more else {})}
    items = [{"metadata": {"name": name}} for name in names]
    return ApiAnswer(200, {"metadata": metadata, "items": items})


def listed(*answers: ApiAnswer | Exception) -> tuple[list[ListPage], AnsweringApi]:
    library = AnsweringApi(*answers)
    client: Any = library

    async def ask() -> list[ListPage]:
        pages = KubernetesStream(client).pages(CONFIG_MAP, "default", selector="a=b")
        return [found async for found in pages]

    return asyncio.run(ask()), library


def names(pages: list[ListPage]) -> list[list[str]]:
    return [[item["metadata"]["name"] for item in found.items] for found in pages]


def test_a_list_is_read_page_by_page() -> None:
    pages, library = listed(page("a", "b", more="token"), page("c", more="another"), page())
    assert names(pages) == [["a", "b"], ["c"], []]
    assert {found.revision for found in pages} == {"7"}
    query = {"labelSelector": "a=b", "limit": "100"}
    assert [sent.query for sent in library.requests] == [
        query,
        {**query, "continue": "token"},
        {**query, "continue": "another"},
    ]
    assert {sent.line for sent in library.requests} == {"GET /api/v1/namespaces/default/configmaps"}


def test_items_of_a_page_get_their_kind() -> None:
    [found], _ = listed(page("a"))
    assert found.items == [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}]


def test_a_page_may_take_a_minute() -> None:
    """It is far larger than the answer to another request."""
    _, library = listed(page("a"))
    assert library.requests[0].timeout.total == 60


def test_a_watch_ends_by_itself_before_the_client_gives_it_up() -> None:
    library = AnsweringApi(TimeoutError())
    client: Any = library

    async def watch() -> None:
        watch = KubernetesStream(client).watch(CONFIG_MAP, "", selector="a=b", revision="7")
        async for _ in watch:
            pass

    with pytest.raises(KubernetesError, match="the watch of configmaps has broken: TimeoutError"):
        asyncio.run(watch())
    [sent] = library.requests
    assert sent.line == "GET /api/v1/configmaps"
    assert sent.query == {
        "watch": "true",
        "labelSelector": "a=b",
        "resourceVersion": "7",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": "300",
    }
    assert sent.timeout.total == 315


@pytest.mark.parametrize(
    ("answer", "error", "text"),
    [
        (refusal(403), RefusedError, "configmaps: because of this"),
        (refusal(201), RefusedError, "configmaps: because of this"),
        (refusal(410), ExpiredError, "configmaps: the revision is too old"),
        (ApiAnswer(404, "404 page not found"), UnknownKindError, "configmaps is not installed"),
        (ApiAnswer(200, "<html>please log in</html>"), KubernetesError, "no JSON: '<html>"),
        (aiohttp.ClientConnectionError("cut off"), KubernetesError, "does not answer: .*cut off"),
        (TimeoutError(), KubernetesError, "does not answer: TimeoutError"),
    ],
)
def test_a_list_that_is_not_answered_or_refused_says_why(
    answer: ApiAnswer | Exception, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        listed(page("a", more="token"), answer)
