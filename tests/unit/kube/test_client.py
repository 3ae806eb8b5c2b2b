"""What the client makes of the API server's answers, without a network."""

import asyncio
from typing import Any

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


@pytest.mark.parametrize("status", [200, 202, 404, 409])
def test_an_object_that_is_deleted_or_gone_or_another_one_is_no_failure(status: int) -> None:
    asyncio.run(client(status).delete(CONFIG_MAP, "default", "orders", uid="u"))


@pytest.mark.parametrize("status", [403, 422, 500])
def test_a_deletion_that_is_refused_is_an_error(status: int) -> None:
    with pytest.raises(RefusedError, match="because of this"):
        asyncio.run(client(status).delete(CONFIG_MAP, "default", "orders", uid="u"))
