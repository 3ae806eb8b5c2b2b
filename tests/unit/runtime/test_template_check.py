"""Which pod templates the API server is asked about, and when again."""

from typing import Any

import pytest
import structlog
from structlog.testing import capture_logs

from balanced_source.errors import InvalidSpecError
from balanced_source_operator.kube.port import RefusedError
from balanced_source_operator.runtime.environment import Desired
from balanced_source_operator.runtime.templates import TemplateCheck
from support.builders import identity, make_spec, source_of, spec_json

pytestmark = pytest.mark.asyncio

SIDECAR = {"spec": {"containers": [{"name": "spark-kubernetes-driver"}, {"name": "sidecar"}]}}
EXECUTOR = {"spec": {"containers": [{"name": "spark-kubernetes-executor", "image": "own"}]}}


class Server:
    """Keeps the templates that it was asked about.

    Attributes:
        asked: the templates, by the name of their PodTemplate.
        answer: an objection, an error, or None.
    """

    def __init__(self) -> None:
        self.asked: list[tuple[str, Any]] = []
        self.answer: str | RefusedError | None = None

    async def objection(self, _: object, manifest: Any) -> str | None:
        self.asked.append((manifest["metadata"]["name"], manifest["template"]))
        if isinstance(self.answer, RefusedError):
            raise self.answer
        return self.answer

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.asked]


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def check(server: Server) -> TemplateCheck:
    structlog.reset_defaults()
    api: Any = server
    return TemplateCheck(api, identity())


def desired(driver: Any = None, executor: Any = None) -> Desired:
    application = spec_json()["application"]
    for role, template in (("driver", driver), ("executor", executor)):
        if template is not None:
            application[role] = {"template": template}
    spec = make_spec(application=application)
    return Desired(spec=spec, source=source_of(spec, None))


async def test_a_source_without_templates_asks_nothing(
    server: Server, check: TemplateCheck
) -> None:
    await check.check(desired())

    assert server.asked == []


@pytest.mark.parametrize("templates", [{"driver": SIDECAR}, {"executor": EXECUTOR}])
async def test_both_pods_are_asked_about_until_they_are_accepted(
    server: Server, check: TemplateCheck, templates: dict[str, Any]
) -> None:
    for _ in range(2):
        await check.check(desired(**templates))
    assert server.names == ["orders-driver", "orders-executor"]

    await check.check(desired(SIDECAR, EXECUTOR))
    assert len(server.asked) == 4, "another template is asked about"


async def test_the_containers_of_spark_have_the_image_that_spark_sets(
    server: Server, check: TemplateCheck
) -> None:
    await check.check(desired(SIDECAR, EXECUTOR))

    driver, executor = (
        [container.get("image") for container in template["spec"]["containers"]]
        for _, template in server.asked
    )
    assert driver == ["balanced-source/spark:4.2.0", None]
    assert executor == ["own"]


async def test_an_objection_makes_the_spec_invalid_and_is_asked_for_again(
    server: Server, check: TemplateCheck
) -> None:
    server.answer = "no image"
    for _ in range(2):
        with pytest.raises(
            InvalidSpecError, match=r"spec\.application\.driver\.template.*no image"
        ):
            await check.check(desired(SIDECAR))

    assert server.names == ["orders-driver"] * 2


async def test_an_operator_that_may_not_ask_logs_it_and_continues(
    server: Server, check: TemplateCheck
) -> None:
    server.answer = RefusedError("forbidden", status=403)
    with capture_logs() as logs:
        await check.check(desired(SIDECAR))
    assert [line["log_level"] for line in logs] == ["warning", "warning"]

    server.answer = RefusedError("exceeded", status=429)
    with pytest.raises(RefusedError):
        await check.check(desired(executor=EXECUTOR))
