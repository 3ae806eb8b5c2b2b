"""What is written goes to the API server, and so does its answer to who asked."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from unittest.mock import AsyncMock

import pytest

from balanced_source_operator.kube.cached import CachedApi
from balanced_source_operator.resources.kinds import BALANCED_SOURCE, CONFIG_MAP

BODY = {"metadata": {"namespace": "a", "name": "b"}}


@pytest.mark.parametrize(
    ("name", "call", "given"),
    [
        ("create", lambda it: it.create(CONFIG_MAP, BODY), ((CONFIG_MAP, BODY), {})),
        ("objection", lambda it: it.objection(CONFIG_MAP, BODY), ((CONFIG_MAP, BODY), {})),
        ("replace", lambda it: it.replace(CONFIG_MAP, BODY), ((CONFIG_MAP, BODY), {})),
        ("apply", lambda it: it.apply(CONFIG_MAP, BODY), ((CONFIG_MAP, BODY), {})),
        (
            "patch_status",
            lambda it: it.patch_status(BALANCED_SOURCE, "a", "b", {"c": 1}),
            ((BALANCED_SOURCE, "a", "b", {"c": 1}), {}),
        ),
        (
            "scale",
            lambda it: it.scale(BALANCED_SOURCE, "a", "b", before=1, after=2),
            ((BALANCED_SOURCE, "a", "b"), {"before": 1, "after": 2}),
        ),
        (
            "delete",
            lambda it: it.delete(CONFIG_MAP, "a", "b", uid="u"),
            ((CONFIG_MAP, "a", "b"), {"uid": "u"}),
        ),
    ],
)
def test_a_write_is_passed_on_with_its_answer(
    name: str, call: Callable[[CachedApi], Awaitable[Any]], given: tuple[Any, Any]
) -> None:
    api = AsyncMock()
    getattr(api, name).return_value = "answered"

    async def ask() -> Any:
        return await call(CachedApi(api, ()))

    expected = None if name in {"scale", "delete"} else "answered"
    assert asyncio.run(ask()) == expected
    getattr(api, name).assert_awaited_once_with(*given[0], **given[1])
