"""A request that the API server never answers is a condition and an event, until it is answered.

Such as one whose admission webhook hangs for longer than the operator waits, while every other
request is answered.
"""

import asyncio
from typing import Any

import pytest

from balanced_source_operator.kube.client import REQUEST_TIMEOUT
from balanced_source_operator.kube.port import ConflictError, KubernetesError, RefusedError
from balanced_source_operator.resources.kinds import (
    BALANCED_SOURCE,
    CONFIG_MAP,
    EVENT,
    KUBEFLOW_APPLICATION,
    POD,
    POD_TEMPLATE,
    ROLE,
    ROLE_BINDING,
    SERVICE_ACCOUNT,
    ResourceKind,
)
from balanced_source_operator.runtime.refusals import NO_ANSWER_PATIENCE, PATIENCE
from support.builders import spec_json
from support.cluster_story import NAMESPACE, SPEC, Story
from support.fake_kubernetes import FakeClient
from support.played_story import played
from support.virtual_time import clock

SILENCE = KubernetesError("the API server does not answer: TimeoutError()")


async def read(story: Story, parallelism: int = 2) -> None:
    await story.launched()
    story.driver.start()
    await story.adopted(parallelism=parallelism, splits=8)


async def passes(story: Story, seconds: float) -> None:
    end = clock() + seconds
    await story.until(lambda: clock() >= end, "time to pass")


def degraded(story: Story) -> dict[str, Any]:
    found = (c for c in story.status.get("conditions", []) if c["type"] == "Degraded")
    return next(found, {"status": "", "reason": "", "message": ""})


def is_known(story: Story) -> bool:
    return str(degraded(story)["reason"]) == "RequestUnanswered"


def warnings(story: Story, reason: str = "RequestUnanswered") -> list[str]:
    found = story.server.select(EVENT, NAMESPACE)
    return [e["message"] for e in found if e["reason"] == reason and e["type"] == "Warning"]


def is_well(story: Story) -> bool:
    return str(degraded(story)["status"]) == "False"


@pytest.mark.parametrize(
    ("kind", "verb", "words"),
    [
        (CONFIG_MAP, "create", "create ConfigMap orders-enumerator"),
        (CONFIG_MAP, "list", "list ConfigMap"),
        (ROLE, "apply", "apply Role orders-documents"),
        (ROLE_BINDING, "apply", "apply RoleBinding orders-documents"),
        (SERVICE_ACCOUNT, "get", "get ServiceAccount spark"),
        (KUBEFLOW_APPLICATION, "create", "create SparkApplication orders-1"),
        (POD, "list", "list Pod"),
        (BALANCED_SOURCE, "get", "get BalancedSource orders"),
    ],
    ids=lambda value: value.plural if isinstance(value, ResourceKind) else str(value),
)
def test_a_request_without_an_answer_is_a_condition_and_a_warning_until_it_gets_one(
    kind: ResourceKind, verb: str, words: str
) -> None:
    async def play(story: Story) -> None:
        allow = story.server.deny(SILENCE, kind=kind, verbs=(verb,))
        await story.begin()
        await story.until(lambda: is_known(story), "a condition")

        message = degraded(story)["message"]
        assert f"the request to {words} since 2025-06-15T15:06:4" in message
        assert ("an admission webhook hangs" in message) == (verb in ("create", "apply"))
        assert story.status["message"].startswith("The API server has not answered")
        await passes(story, 300)
        assert warnings(story) == [message], "once"
        allow()
        await read(story)
        await story.until(lambda: is_well(story), "all is well")

    played(play)


def test_a_document_that_cannot_be_written_is_a_condition_while_the_query_continues() -> None:
    async def play(story: Story) -> None:
        await story.begin()
        await read(story)
        allow = story.server.deny(SILENCE, kind=CONFIG_MAP, verbs=("replace",))
        story.patch(parallelism=3)

        await story.until(lambda: is_known(story), "a condition")

        assert "update ConfigMap orders-enumerator" in degraded(story)["message"]
        ready = next(c for c in story.status["conditions"] if c["type"] == "Ready")
        assert ready["status"] == "True"
        assert degraded(story)["message"] in ready["message"]
        allow()
        await story.adopted(parallelism=3, splits=8)
        await story.until(lambda: is_well(story), "all is well")

    played(play)


def test_an_application_that_cannot_be_deleted_is_a_condition() -> None:
    async def play(story: Story) -> None:
        await story.begin()
        await read(story)
        allow = story.server.deny(SILENCE, kind=KUBEFLOW_APPLICATION, verbs=("delete",))
        story.patch(suspend=True)
        await story.until(lambda: is_known(story), "a condition")
        assert "delete SparkApplication orders-1" in degraded(story)["message"]
        allow()
        await story.until(lambda: story.status["application"]["state"] == "Paused", "its stop")

    played(play)


def test_a_template_that_cannot_be_checked_is_a_condition() -> None:
    template = {"spec": {"containers": [{"name": "spark-kubernetes-driver"}]}}
    application = {**spec_json(**SPEC)["application"], "driver": {"template": template}}

    async def play(story: Story) -> None:
        allow = story.server.deny(SILENCE, kind=POD_TEMPLATE, verbs=("check",))
        await story.begin(application=application)
        await story.until(lambda: is_known(story), "a condition")
        assert "check PodTemplate orders-driver" in degraded(story)["message"]
        allow()
        await read(story)
        await story.until(lambda: is_well(story), "all is well")

    played(play)


def test_events_without_an_answer_are_a_condition_beside_the_problem_they_are_about() -> None:
    async def play(story: Story) -> None:
        quota = RefusedError("exceeded quota: small", status=403)
        allow_role = story.server.deny(quota, kind=ROLE, verbs=("apply",))
        allow_event = story.server.deny(SILENCE, kind=EVENT, verbs=("create",))
        await story.begin()

        await story.until(lambda: "create Event orders." in degraded(story)["message"], "both")

        assert degraded(story)["reason"] == "QuotaExceeded", "the cause comes first"
        allow_event()
        await story.until(lambda: warnings(story, "QuotaExceeded"), "the event after all")
        allow_role()
        await read(story)
        await story.until(lambda: is_well(story), "all is well")

    played(play)


def test_a_status_without_an_answer_is_an_event_and_the_source_is_served() -> None:
    async def play(story: Story) -> None:
        allow = story.server.deny(SILENCE, kind=BALANCED_SOURCE, verbs=("patch status",))
        await story.begin()
        await story.until(lambda: warnings(story), "a Warning event")
        assert "update the status of BalancedSource orders" in warnings(story)[0]
        await story.launched()
        story.driver.start()
        allow()
        await story.adopted(parallelism=2, splits=8)
        await story.until(lambda: is_well(story), "all is well")

    played(play)


def test_a_source_is_suspended_although_a_list_gets_no_answer() -> None:
    async def play(story: Story) -> None:
        await story.begin()
        await read(story)
        story.server.deny(SILENCE, kind=POD, verbs=("list",))
        await story.until(lambda: is_known(story), "a condition")

        story.patch(suspend=True)

        await story.until(
            lambda: not story.server.select(KUBEFLOW_APPLICATION, NAMESPACE), "no application"
        )

    played(play)


def test_a_request_that_is_not_answered_for_a_moment_is_no_problem() -> None:
    async def play(story: Story) -> None:
        await story.begin()
        await read(story)
        for parallelism in (3, 4):
            allow = story.server.deny(SILENCE, kind=CONFIG_MAP, verbs=("replace",))
            story.patch(parallelism=parallelism)
            await passes(story, NO_ANSWER_PATIENCE - 10)
            allow()
            await story.adopted(parallelism=parallelism, splits=8)
            assert is_well(story)
        assert not warnings(story)

    played(play)


def test_the_condition_comes_within_some_attempts_that_take_their_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    call = FakeClient._call

    async def hanging(client: FakeClient, verb: str, kind: ResourceKind, *rest: Any) -> Any:
        if (verb, kind) == ("apply", ROLE):
            await asyncio.sleep(REQUEST_TIMEOUT)
            raise SILENCE.with_traceback(None)
        return await call(client, verb, kind, *rest)

    async def play(story: Story) -> None:
        monkeypatch.setattr(FakeClient, "_call", hanging)
        await story.begin()
        begun = clock()
        await story.until(lambda: is_known(story), "a condition")
        assert 3 * REQUEST_TIMEOUT <= clock() - begun <= 4 * REQUEST_TIMEOUT

    played(play)


class Outage:
    """An API server that is away, and what a source was said to suffer from."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, hangs: float = 0.0) -> None:
        self.is_away = False
        self.reasons: set[str] = set()
        call = FakeClient._call

        async def away(client: FakeClient, verb: str, *rest: Any) -> Any:
            if self.is_away:
                # Also beyond the end of the outage: the connection is dead.
                await asyncio.sleep(hangs)
                raise SILENCE.with_traceback(None)
            return await call(client, verb, *rest)

        monkeypatch.setattr(FakeClient, "_call", away)

    def observe(self, kind: ResourceKind, _: str, manifest: Any) -> None:
        if kind == BALANCED_SOURCE:
            conditions = manifest.get("status", {}).get("conditions", [])
            self.reasons |= {c["reason"] for c in conditions if c["type"] == "Degraded"}


@pytest.mark.parametrize("seconds", [60, 301])
@pytest.mark.parametrize("slow", [(CONFIG_MAP, "replace"), (POD, "list")])
@pytest.mark.parametrize("hangs", [0.0, REQUEST_TIMEOUT])
def test_an_api_server_that_was_away_raises_no_alarm_when_it_is_back(
    monkeypatch: pytest.MonkeyPatch, slow: tuple[ResourceKind, str], hangs: float, seconds: float
) -> None:
    """Also if it answers one kind of request later than others, as long as it starts."""

    async def play(story: Story) -> None:
        outage = Outage(monkeypatch, hangs=hangs)
        await story.begin()
        await read(story)
        story.server.watch(outage.observe)
        outage.is_away = True
        story.patch(parallelism=3)
        for _ in range(int(seconds // 300) + 1):
            await passes(story, min(seconds, 300))
        allow = story.server.deny(SILENCE, kind=slow[0], verbs=(slow[1],))
        outage.is_away = False
        await passes(story, NO_ANSWER_PATIENCE - 10)
        allow()
        await story.adopted(parallelism=3, splits=8)
        await passes(story, 120)

        assert outage.reasons.isdisjoint({"RequestUnanswered", "ApiServerRefused"})
        assert not warnings(story)

    played(play)


def test_a_condition_outlasts_an_outage_and_ends_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def play(story: Story) -> None:
        outage = Outage(monkeypatch)
        await story.begin()
        await read(story)
        allow = story.server.deny(SILENCE, kind=CONFIG_MAP, verbs=("replace",))
        story.patch(parallelism=3)
        await story.until(lambda: is_known(story), "a condition")
        message = degraded(story)["message"]
        outage.is_away = True
        await passes(story, 120)
        outage.is_away = False
        await passes(story, 120)
        assert degraded(story)["message"] == message
        assert len(warnings(story)) == 1
        allow()
        await story.adopted(parallelism=3, splits=8)
        await story.until(lambda: is_well(story), "all is well")

    played(play)


def test_a_conflict_that_lasts_is_a_condition() -> None:
    """Such as an admission webhook that denies with the status 409."""
    conflict = ConflictError("roles orders-documents: the webhook says no")

    async def play(story: Story) -> None:
        allow = story.server.deny(conflict, kind=ROLE, verbs=("apply",))
        await story.begin()
        begun = clock()
        await story.until(lambda: degraded(story)["reason"] == "ApiServerRefused", "a condition")
        assert clock() - begun >= PATIENCE
        assert "the webhook says no" in degraded(story)["message"]
        assert len(warnings(story, "ApiServerRefused")) == 1
        allow()
        await read(story)
        await story.until(lambda: is_well(story), "all is well")

    played(play)
