"""Ready means that the operator can work, and its log says why it cannot."""

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any

import aiohttp
import kopf
import pytest
from structlog.testing import capture_logs

from balanced_source_operator.handlers import KopfFollower
from balanced_source_operator.health import Health, Role, answering_probes, watch_rights
from balanced_source_operator.kube import rights
from balanced_source_operator.kube.port import KubernetesError
from balanced_source_operator.settings import Settings
from testbed.ports import LOOPBACK, PortPool

pytestmark = pytest.mark.asyncio


async def ask(port: int, path: str) -> tuple[int, dict[str, str]]:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://{LOOPBACK}:{port}{path}") as reply,
    ):
        return reply.status, await reply.json()


async def test_a_replica_is_alive_at_once_and_ready_with_its_rights(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    health, ports = Health(), PortPool()
    port = ports.take()
    async with answering_probes(health, port):
        assert (await ask(port, "/healthz"))[0] == 200
        assert (await ask(port, "/readyz"))[0] == 503
        health.role = Role.STANDING_BY
        status, told = await ask(port, "/readyz")
        assert (status, "not checked yet" in told["problem"]) == (503, True)
        health.note_rights([])
        assert await ask(port, "/readyz") == (200, {"role": "standing by", "problem": ""})
        health.note_rights(["list pods in all namespaces"])
        assert (await ask(port, "/readyz"))[0] == 503
        assert (await ask(port, "/healthz"))[0] == 200, "a restart grants no rights"
    ports.close()
    assert [record for record in caplog.records if record.name.startswith("aiohttp.access")] == []


async def test_missing_rights_are_logged_once_and_so_is_their_return() -> None:
    health = Health()
    with capture_logs() as logs:
        for missing in (["list pods in namespace jobs"], ["list pods in namespace jobs"], [], []):
            health.note_rights(missing)

    assert [entry["log_level"] for entry in logs] == ["error", "info"]
    assert (
        "may not list pods in namespace jobs. Install the roles of the Helm chart"
        in logs[0]["problem"]
    )


async def test_a_long_list_of_rights_is_cut() -> None:
    health = Health()
    health.note_rights([f"get {number}" for number in range(9)])

    assert "get 4 and 4 more" in health.problem


async def test_an_api_server_that_does_not_answer_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("balanced_source_operator.health.SOON", 0.0)
    health, answers = (
        Health(),
        iter([KubernetesError("out"), ["get pods"], KubernetesError("out"), []]),
    )
    done = asyncio.Event()

    async def missing() -> Sequence[str]:
        answer = next(answers)
        if isinstance(answer, KubernetesError):
            raise answer
        if not answer:
            done.set()
        return answer

    task = asyncio.create_task(watch_rights(health, missing))
    async with asyncio.timeout(30):
        await done.wait()
    await asyncio.sleep(0)
    assert health.problem == ""
    task.cancel()


class Reviewer:
    """The API server's answers to questions about rights."""

    def __init__(self, denied: Mapping[str, Any]) -> None:
        self._denied = denied
        self.asked = 0

    def deny(self, denied: Mapping[str, Any]) -> None:
        self._denied = denied

    async def call_api(self, *_: Any, body: Mapping[str, Any], **__: Any) -> Any:
        self.asked += 1
        attributes = body["spec"]["resourceAttributes"]
        text = json.dumps({"status": {"allowed": not self._denied.items() <= attributes.items()}})

        class Response:
            async def text(self) -> str:
                return text

        return Response()


@pytest.mark.parametrize(
    ("denied", "namespaces", "missing"),
    [
        ({"resource": "nothing"}, (), []),
        ({"resource": "pods", "verb": "watch"}, (), ["watch pods in all namespaces"]),
        ({"subresource": "scale"}, ("a",), ["patch balancedsources/scale in namespace a"]),
        ({"namespace": "b", "resource": "events"}, ("a", "b"), ["create events in namespace b"]),
    ],
)
async def test_rights_are_asked_for_one_by_one(
    denied: dict[str, str], namespaces: tuple[str, ...], missing: list[str]
) -> None:
    reviewer: Any = Reviewer(denied)

    assert await rights.RightsCheck(reviewer, namespaces).missing() == missing
    assert reviewer.asked == len(list(rights.needed(namespaces)))


async def test_while_rights_are_missing_only_those_are_asked_for() -> None:
    reviewer: Any = Reviewer({"namespace": "b", "resource": "events"})
    check = rights.RightsCheck(reviewer, ("a", "b"))
    everything = len(list(rights.needed(("a", "b"))))

    await check.missing()
    before = reviewer.asked
    assert await check.missing() == ["create events in namespace b"]
    assert reviewer.asked - before == 1

    reviewer.deny({"namespace": "a", "resource": "pods", "verb": "watch"})
    before = reviewer.asked
    assert await check.missing() == ["watch pods in namespace a"], "granted and lost meanwhile"
    assert reviewer.asked - before == 1 + everything


async def test_labels_of_namespaces_can_be_followed_only_with_a_right_on_the_cluster() -> None:
    reviewer: Any = Reviewer({"resource": "namespaces", "verb": "watch"})

    found = await rights.RightsCheck(reviewer, (), selector="balancedsource.io/shard=a").missing()
    assert found == ["watch namespaces in the cluster"]
    assert await rights.RightsCheck(reviewer, ()).missing() == []


async def test_without_the_right_to_its_lease_an_operator_cannot_serve() -> None:
    reviewer: Any = Reviewer({"resource": "leases"})

    assert await rights.RightsCheck(reviewer, ("a",), lease_namespace="system").missing() == [
        "create leases in namespace system",
        "get leases/balanced-source-operator in namespace system",
        "update leases/balanced-source-operator in namespace system",
    ]
    assert await rights.RightsCheck(reviewer, ("a",)).missing() == []


async def test_an_answer_without_content_is_an_error() -> None:
    class Refusing:
        async def call_api(self, *_: Any, **__: Any) -> Any:
            class Response:
                async def text(self) -> str:
                    return '{"kind": "Status", "message": "no"}'

            return Response()

    client: Any = Refusing()
    with pytest.raises(
        KubernetesError, match="does not say whether the operator may get balancedsources"
    ):
        await rights.RightsCheck(client, ()).missing()


async def test_a_user_without_a_name_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenShift assigns a UID that is not in /etc/passwd.

    kopf asks for its name unless it is given an identity.
    """
    given: dict[str, Any] = {}

    async def operator(**settings: Any) -> None:
        given.update(settings)

    monkeypatch.setattr(kopf, "operator", operator)
    follower = KopfFollower(Settings(identity="pod-1"), lambda *_: None)
    await follower.run(asyncio.Event())

    assert given["identity"] == "pod-1"
    assert given.get("liveness_endpoint") is None, "its server logs each probe"
