"""Asks an API server about manifests, by a dry run."""

import asyncio
import enum
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from balanced_source.errors import BalancedSourceError, InvalidSpecError
from balanced_source_operator.kube.client import KubernetesClient
from balanced_source_operator.kube.connect import NoKubeconfigError, connect
from balanced_source_operator.kube.port import KubernetesError, RefusedError, UnknownKindError
from balanced_source_operator.resources.kinds import BALANCED_SOURCE
from balanced_source_operator.validation.manifests import Checked, Report, with_problem


class ServerMode(enum.StrEnum):
    """Whether the API server is asked."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


_NO_SERVER: Final = "no kubeconfig found: not checked by an API server"


def check_with_server(report: Report, mode: ServerMode, *, namespace: str, context: str) -> Report:
    """Return the report with what the API server refuses.

    Manifests with known problems are not sent.

    Raises:
        BalancedSourceError: mode is ALWAYS, and the API server cannot be asked.
    """
    if mode is ServerMode.NEVER:
        return report
    try:
        return asyncio.run(_asked(report, namespace, context))
    except NoKubeconfigError:
        if mode is ServerMode.ALWAYS or context:
            raise
        return replace(report, notes=(*report.notes, _NO_SERVER))
    except BalancedSourceError as error:
        if mode is ServerMode.ALWAYS:
            raise
        return replace(report, notes=(*report.notes, f"not checked by an API server: {error}"))


async def _asked(report: Report, namespace: str, context: str) -> Report:
    bad = {(problem.file, problem.document) for problem in report.problems}
    async with connect(context=context) as (api, default):
        for checked in report.checked:
            if (checked.name.file, checked.name.document) not in bad:
                message = await _objection(api, checked, namespace or default)
                report = with_problem(report, checked, message) if message else report
    return report


async def _objection(api: KubernetesClient, checked: Checked, default: str) -> str | None:
    metadata = checked.manifest["metadata"]
    placed = {**metadata, "namespace": metadata.get("namespace") or default}
    try:
        return await api.dry_run(
            BALANCED_SOURCE, _without_status({**checked.manifest, "metadata": placed})
        )
    except UnknownKindError as error:
        raise InvalidSpecError(
            "the API server has no BalancedSource: install the CRD", field="CRD"
        ) from error
    except RefusedError as error:
        raise KubernetesError(
            f"the API server cannot check {checked.name.name}: {error}"
        ) from error


def _without_status(manifest: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in manifest.items() if key != "status"}
