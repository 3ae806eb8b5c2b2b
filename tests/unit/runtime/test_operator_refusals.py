"""What the API server refuses is a condition and an event with its message, until allowed."""

import pytest

from balanced_source_operator.controller.refusals import refusal_problem
from balanced_source_operator.kube.port import RefusedError
from balanced_source_operator.resources.kinds import (
    BALANCED_SOURCE,
    CONFIG_MAP,
    EVENT,
    KUBEFLOW_APPLICATION,
    POD,
    ROLE,
    ROLE_BINDING,
    SERVICE_ACCOUNT,
    ResourceKind,
)
from support.cluster_story import NAMESPACE, Story
from support.played_story import played
from support.virtual_time import clock

QUOTA = "exceeded quota: small, requested: count/x=1, used: count/x=2, limited: count/x=2"


async def read(story: Story) -> None:
    await story.launched()
    story.driver.start()
    await story.adopted(parallelism=2, splits=8)


def degraded(story: Story) -> dict[str, str]:
    return next(
        (c for c in story.status.get("conditions", []) if c["type"] == "Degraded"),
        {"status": "", "reason": ""},
    )


def warnings(story: Story, reason: str) -> list[str]:
    found = story.server.select(EVENT, NAMESPACE)
    return [e["message"] for e in found if e["reason"] == reason and e["type"] == "Warning"]


@pytest.mark.parametrize(
    ("kind", "verb"),
    [
        (CONFIG_MAP, "create"),
        (CONFIG_MAP, "list"),
        (ROLE, "apply"),
        (ROLE_BINDING, "apply"),
        (SERVICE_ACCOUNT, "get"),
        (KUBEFLOW_APPLICATION, "create"),
        (POD, "list"),
        (BALANCED_SOURCE, "get"),
    ],
    ids=lambda value: value.plural if isinstance(value, ResourceKind) else str(value),
)
def test_a_refused_call_is_a_condition_and_a_warning_until_it_is_allowed(
    kind: ResourceKind, verb: str
) -> None:
    async def play(story: Story) -> None:
        allow = story.server.deny(RefusedError(QUOTA, status=403), kind=kind, verbs=(verb,))
        await story.begin()

        await story.until(lambda: degraded(story)["reason"] == "QuotaExceeded", "a condition")

        message = degraded(story)["message"]
        assert QUOTA in message
        assert "Raise the ResourceQuota" in message
        assert kind.kind in message
        assert story.status["message"].startswith("The API server refused to"), (
            "the sentence for people"
        )
        await story.until(lambda: len(warnings(story, "QuotaExceeded")) >= 1, "a Warning event")
        started = clock()
        await story.until(lambda: clock() - started > 300, "five minutes")
        told = warnings(story, "QuotaExceeded")
        assert len(told) == len(set(told)) <= 3, "once for each object"
        allow()
        await read(story)
        await story.until(lambda: degraded(story)["status"] == "False", "all is well")

    played(play)


@pytest.mark.parametrize("verb", ["replace"])
def test_a_rejected_write_of_a_document_is_a_condition_while_the_query_continues(verb: str) -> None:
    async def play(story: Story) -> None:
        await story.begin()
        await read(story)
        allow = story.server.deny(RefusedError(QUOTA, status=403), kind=CONFIG_MAP, verbs=(verb,))

        story.patch(parallelism=3)

        await story.until(lambda: degraded(story)["reason"] == "QuotaExceeded", "a condition")
        assert "orders-enumerator" in degraded(story)["message"]
        allow()
        await story.adopted(parallelism=3, splits=8)
        await story.until(lambda: degraded(story)["status"] == "False", "all is well")

    played(play)


def test_a_refused_deletion_of_the_application_is_a_condition() -> None:
    async def play(story: Story) -> None:
        await story.begin()
        await read(story)
        allow = story.server.deny(
            RefusedError(QUOTA, status=403), kind=KUBEFLOW_APPLICATION, verbs=("delete",)
        )

        story.patch(suspend=True)

        await story.until(
            lambda: "delete SparkApplication orders-1" in degraded(story).get("message", ""),
            "a condition",
        )
        allow()
        await story.until(
            lambda: story.status["application"]["state"] == "Paused", "the application to stop"
        )

    played(play)


def test_refused_events_are_a_condition_and_are_posted_later() -> None:
    async def play(story: Story) -> None:
        words = 'User "operator" cannot create resource "events" in API group ""'
        allow = story.server.deny(RefusedError(words, status=403), kind=EVENT, verbs=("create",))
        await story.begin()
        await read(story)
        await story.until(lambda: degraded(story)["reason"] == "PermissionMissing", "a condition")

        allow()

        await story.until(lambda: warnings(story, "PermissionMissing"), "the event after all")
        await story.until(lambda: degraded(story)["status"] == "False", "all is well")

    played(play)


def test_a_refused_status_is_an_event_and_the_source_is_served() -> None:
    async def play(story: Story) -> None:
        words = (
            "ValidatingAdmissionPolicy 'freeze' with binding 'freeze' denied request: no writes"
            " today"
        )
        allow = story.server.deny(
            RefusedError(words, status=422), kind=BALANCED_SOURCE, verbs=("patch status",)
        )
        await story.begin()
        await story.until(lambda: warnings(story, "AdmissionDenied"), "a Warning event")
        assert "freeze" in warnings(story, "AdmissionDenied")[0]
        await story.launched()
        story.driver.start()

        allow()

        await story.adopted(parallelism=2, splits=8)
        await story.until(lambda: degraded(story)["status"] == "False", "all is well")

    played(play)


def test_a_transient_answer_is_a_condition_only_if_it_lasts() -> None:
    async def play(story: Story) -> None:
        await story.begin()
        await read(story)
        error = RefusedError("etcdserver: request timed out", status=500)
        allow = story.server.deny(error, kind=CONFIG_MAP, verbs=("replace",))
        story.patch(parallelism=3)
        started = clock()
        await story.until(lambda: clock() - started > 5, "five seconds")
        assert degraded(story)["status"] == "False"
        await story.until(lambda: degraded(story)["reason"] == "ApiServerRefused", "a condition")
        allow()
        await story.adopted(parallelism=3, splits=8)

    played(play)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ('configmaps "x" is forbidden: exceeded quota: q', "QuotaExceeded"),
        (
            'roles "x" is forbidden: status unknown for quota: q, resources: count/roles',
            "ApiServerRefused",
        ),
        ('User "o" cannot patch resource "roles" in API group', "PermissionMissing"),
        (
            'user "o" is attempting to grant RBAC permissions not currently held',
            "PermissionMissing",
        ),
        ('admission webhook "x" denied the request: no', "AdmissionDenied"),
        ("ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no", "AdmissionDenied"),
        ('RoleBinding "r" is invalid: subjects[0].name: Invalid value: "A B"', "ObjectInvalid"),
        ("something else", "ApiServerRefused"),
    ],
)
def test_the_message_of_the_server_gives_the_cause(words: str, reason: str) -> None:
    problem = refusal_problem(
        "create ConfigMap x", RefusedError(words, status=403), scope="ConfigMap/x"
    )

    assert problem.reason == reason
    assert words in problem.message
    assert problem.message.endswith("the operator retries automatically.")
