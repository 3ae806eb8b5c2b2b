"""Asks the API server about pod templates before anything is made from them.

It knows more than a schema: names, duplicates, fields of newer versions. The question is a dry run
of a PodTemplate, an object that does nothing even if it exists: the right to create it is harmless,
that to create a Pod is not.
"""

import copy
import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import structlog

from balanced_source.errors import InvalidSpecError
from balanced_source_operator.kube.port import KubernetesApi, RefusedError
from balanced_source_operator.resources.identity import Identity
from balanced_source_operator.resources.kinds import POD_TEMPLATE
from balanced_source_operator.resources.spark_application import spark_application
from balanced_source_operator.runtime.environment import Desired

log = structlog.get_logger(__name__)


class TemplateCheck:
    """Of one source.

    An answer holds until a template changes; an objection is asked for again in each turn.
    """

    def __init__(self, api: KubernetesApi, source: Identity) -> None:
        self._api = api
        self._source = source
        self._accepted = ""

    async def check(self, desired: Desired) -> None:
        """Checks the templates of driver and executors, as the Spark operator will get them.

        Raises:
            InvalidSpecError: the API server would refuse such a pod; with its message.
            KubernetesError: the API server does not answer.
        """
        application = desired.spec.application
        if application.driver.template is None and application.executor.template is None:
            return
        manifest = spark_application(
            self._source,
            application,
            name=self._source.name,
            parallelism=1,
            secrets=desired.secrets,
            conf={},
        )
        templates = {role: manifest["spec"][role]["template"] for role in ("driver", "executor")}
        key = json.dumps(templates)
        if key == self._accepted:
            return
        for role, template in templates.items():
            await self._ask(role, template, application.image)
        self._accepted = key

    async def _ask(self, role: str, template: Mapping[str, Any], image: str) -> None:
        name = f"{self._source.name}-{role}"
        manifest = {
            "apiVersion": POD_TEMPLATE.api_version,
            "kind": POD_TEMPLATE.kind,
            "metadata": {"name": name, "namespace": self._source.namespace},
            "template": _with_image(template, image),
        }
        try:
            objection = await self._api.objection(POD_TEMPLATE, manifest)
        except RefusedError as error:
            # An operator that may not ask continues: all that is lost is this check.
            if error.status != HTTPStatus.FORBIDDEN:
                raise
            log.warning(
                "the API server does not check pod templates: allow the operator to",
                error=str(error),
            )
            return
        if objection is not None:
            raise InvalidSpecError(objection, field=f"spec.application.{role}.template")


def _with_image(template: Mapping[str, Any], image: str) -> dict[str, Any]:
    """Spark sets the image of its own container, which is the first one."""
    result: dict[str, Any] = copy.deepcopy(dict(template))
    for container in result["spec"]["containers"]:
        if container.get("name", "").startswith("spark-kubernetes-"):
            container.setdefault("image", image)
    return result
