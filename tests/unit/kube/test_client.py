"""What the client makes of the API server's answers, without a network."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any, cast

import pytest

from balanced_source_operator.kube.client import KubernetesClient
from balanced_source_operator.kube.port import RefusedError
from balanced_source_operator.resources.kinds import CONFIG_MAP


class Answer:
    """What an API server answers."""

    def __init__(self, status: int) -> None:
        self.status = status

    async def text(self) -> str:
        return '{"kind": "Status", "message": "because of this"}'


def client(status: int) -> KubernetesClient:
    """A client whose API server gives this answer to all requests."""

    class Library:
        async def call_api(self, *_: Any, **__: Any) -> Answer:
            return Answer(status)

    library: Any = Library()
    return KubernetesClient(library)


class Stored:
    """An API server that has one object, and what it was asked to change there."""

    def __init__(self, stored: Mapping[str, Any]) -> None:
        self._text = json.dumps(stored)
        self.patches: list[Any] = []

    async def call_api(self, _: str, method: str, **given: Any) -> Answer:
        if method == "PATCH":
            self.patches.append(given["body"])
        answer: Any = Answer(200)
        answer.text = self.text
        return cast("Answer", answer)

    async def text(self) -> str:
        return self._text


@pytest.mark.parametrize(
    ("spec", "expected"),
    [({}, (0, 1)), ({"nonce": 1}, (1, 2)), ({"nonce": 2}, (2, 3)), ({"nonce": 3}, (3, 0))],
)
def test_a_number_is_counted_up_and_begins_again_at_0(
    spec: dict[str, int], expected: tuple[int, int]
) -> None:
    """Only where no one else has changed the object meanwhile."""
    stored = {"metadata": {"resourceVersion": "7"}, "spec": spec}
    server: Any = Stored(stored)

    found = asyncio.run(
        KubernetesClient(server).count_up(CONFIG_MAP, "default", "orders", "nonce", most=3)
    )

    assert found == expected
    assert server.patches == [
        {"metadata": {"resourceVersion": "7"}, "spec": {"nonce": expected[1]}}
    ]


@pytest.mark.parametrize("status", [200, 202, 404, 409])
def test_an_object_that_is_deleted_or_gone_or_another_one_is_no_failure(status: int) -> None:
    asyncio.run(client(status).delete(CONFIG_MAP, "default", "orders", uid="u"))


@pytest.mark.parametrize("status", [403, 422, 500])
def test_a_deletion_that_is_refused_is_an_error(status: int) -> None:
    with pytest.raises(RefusedError, match="because of this"):
        asyncio.run(client(status).delete(CONFIG_MAP, "default", "orders", uid="u"))
