"""Pod templates are checked by the API server before anything is made from them."""

from typing import Any

from balanced_source_operator.kube.port import RefusedError
from balanced_source_operator.resources.kinds import POD_TEMPLATE
from support.builders import spec_json
from support.cluster_story import Story
from support.played_story import played

SIDECAR = {"spec": {"containers": [{"name": "spark-kubernetes-driver"}, {"name": "sidecar"}]}}
OBJECTION = (
    'PodTemplate "orders-driver" is invalid: template.spec.containers[1].image: Required value'
)


def application(template: dict[str, Any] | None) -> dict[str, Any]:
    driver = {"template": template} if template is not None else {}
    return {**spec_json()["application"], "driver": driver}


def invalid(story: Story) -> str:
    conditions = {c["type"]: c for c in story.status.get("conditions", [])}
    return (
        str(conditions["Ready"]["message"])
        if conditions.get("Ready", {}).get("reason") == "InvalidSpec"
        else ""
    )


def test_nothing_is_made_from_a_template_that_the_api_server_refuses() -> None:
    async def play(story: Story) -> None:
        story.server.objections[POD_TEMPLATE] = OBJECTION
        await story.begin(application=application(SIDECAR))
        await story.until(lambda: invalid(story), "a condition")
        assert f"spec.application.driver.template: {OBJECTION}" in invalid(story)
        assert story.applications == []
        story.server.objections.clear()
        await story.launched()

    assert played(play).applications == ["orders-1"]


def test_a_running_application_is_left_alone_and_only_new_templates_are_asked_about() -> None:
    async def play(story: Story) -> None:
        await story.begin(application=application(SIDECAR))
        await story.launched()
        story.driver.start()
        await story.adopted(parallelism=2, splits=8)
        story.server.objections[POD_TEMPLATE] = OBJECTION
        story.patch(parallelism=3)
        await story.adopted(parallelism=3, splits=8)
        assert not invalid(story)

    assert played(play).applications == ["orders-1"]


def test_without_the_right_to_a_dry_run_the_schema_decides() -> None:
    async def play(story: Story) -> None:
        def refuse(kind: object) -> str | None:
            raise RefusedError(f"{kind} is forbidden", status=403)

        story.server.objections = type(
            "Forbidden", (dict,), {"get": lambda _, kind: refuse(kind)}
        )()
        await story.begin(application=application(SIDECAR))
        await story.launched()

    assert played(play).applications == ["orders-1"]
