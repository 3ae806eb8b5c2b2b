"""What the API server says about the pod of a former driver."""

from types import SimpleNamespace
from typing import Any

import httpx2
import pytest
from lightkube import ApiError
from lightkube.models.core_v1 import PodStatus
from lightkube.models.meta_v1 import ObjectMeta, Status
from lightkube.resources.core_v1 import Pod

from balanced_source_spark.channels.kubernetes import KubernetesChannel
from balanced_source_spark.instance import Instance

FORMER = Instance(id="former", pod="orders-1-driver", uid="u1")


def pod(uid: str = "u1", phase: str = "Running") -> Pod:
    return Pod(metadata=ObjectMeta(name="orders-1-driver", uid=uid), status=PodStatus(phase=phase))


def refused(code: int) -> ApiError:
    return ApiError(status=Status(code=code, message="no"))


@pytest.mark.parametrize(
    ("answer", "is_gone"),
    [
        (pod(), False),
        (pod(phase="Unknown"), False),
        (pod(uid="u2"), True),
        (pod(phase="Failed"), True),
        (pod(phase="Succeeded"), True),
        (refused(404), True),
        (refused(403), False),
        (refused(500), False),
        (httpx2.ConnectError("refused"), False),
    ],
    ids=[
        "runs",
        "node lost",
        "replaced",
        "failed",
        "succeeded",
        "deleted",
        "not allowed",
        "fault",
        "unreachable",
    ],
)
def test_only_what_is_certain_counts_as_gone(answer: Any, is_gone: bool) -> None:
    def get(kind: Any, name: str, *, namespace: str) -> Pod:
        assert (kind, name, namespace) == (Pod, "orders-1-driver", "shop")
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[no-any-return]

    client: Any = SimpleNamespace(get=get)
    channel = KubernetesChannel(client, namespace="shop", source="orders", uid="u")

    assert channel.is_gone(FORMER) is is_gone
    assert not channel.is_gone(Instance(id="laptop", machine="m", pid=1)), (
        "what ran in no pod is not asked for"
    )
