"""``balanced-source validate`` refuses without an API server exactly what an API server refuses."""

import functools
import json
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from balanced_source_operator.kube.client import KubernetesClient
from balanced_source_operator.kube.port import KubernetesApi
from balanced_source_operator.resources.kinds import BALANCED_SOURCE
from balanced_source_operator.validation import path_text
from balanced_source_operator.validation.manifest import refused_by_api_server
from fuzz.manifests import EXAMPLES, specs
from fuzz.values import places, put
from support.builders import spec_json
from support.secret_names import PLAIN_KEYS, SECRET_KEYS

CASES: Final = 300


@functools.cache
def drawn_specs() -> list[Any]:
    """The same specs in each run: examples, most of them with up to five changes."""
    found: list[Any] = [
        spec_json(),
        *EXAMPLES,
        *(put(EXAMPLES[0], at, None) for at in places(EXAMPLES[0]) if at),
        *(_with_option(key) for key in (*SECRET_KEYS, *PLAIN_KEYS)),
    ]

    @settings(
        max_examples=CASES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(spec=specs())
    def collect(spec: Any) -> None:
        found.append(spec)

    collect()
    return [spec for spec in found if _is_json(spec)]


def _with_option(key: str) -> Any:
    """A spec with this key in all maps whose values must be no secrets."""
    sink = {"format": "parquet", "options": {key: "plain"}}
    pipeline = {"checkpointLocation": "/c", "sink": sink}
    conf = {key: "plain"} if key.startswith("spark.") else {}
    application = {**spec_json()["application"], "pipeline": pipeline, "sparkConf": conf}
    return spec_json(application=application)


def _is_json(value: Any) -> bool:
    try:
        return json.loads(json.dumps(value, allow_nan=False).encode()) == value
    except (ValueError, TypeError, RecursionError):
        return False


def test_manifests_that_are_drawn_reach_every_answer() -> None:
    answers = [bool(refused_by_api_server(manifest(spec, "default"))) for spec in drawn_specs()]

    assert len(answers) > CASES / 2
    assert min(answers.count(True), answers.count(False)) > CASES / 20


def manifest(spec: Any, namespace: str) -> dict[str, Any]:
    metadata = {"namespace": namespace, "name": "orders"}
    return {
        "apiVersion": BALANCED_SOURCE.api_version,
        "kind": BALANCED_SOURCE.kind,
        "metadata": metadata,
        "spec": spec,
    }


@pytest.mark.integration
@pytest.mark.parametrize("which", ["real"], indirect=True)
async def test_the_api_server_and_the_check_without_one_agree(
    api: KubernetesApi, namespace: str
) -> None:
    differences = [text async for text in _differences(api, namespace)]

    assert differences == []


async def _differences(api: KubernetesApi, namespace: str) -> Any:
    for spec in drawn_specs():
        body = manifest(spec, namespace)
        objection = await api.objection(BALANCED_SOURCE, body)
        found = refused_by_api_server(body)
        if (objection is None) != (not found):
            said = [f"{path_text(f.path)}: {f.message}" for f in found]
            yield f"API server: {objection}; without it: {said}; spec: {json.dumps(spec)[:3000]}"


@pytest.mark.integration
@pytest.mark.parametrize("which", ["real"], indirect=True)
async def test_the_dry_run_checks_changes_of_a_source_too(
    api: KubernetesApi, namespace: str
) -> None:
    """Rules about a change compare with what is stored."""
    assert isinstance(api, KubernetesClient)
    end = {"type": "Latest"}
    spec = spec_json()
    changed = spec_json(source={"kafka": {**spec["source"]["kafka"], "stoppingOffsets": end}})

    assert await api.dry_run(BALANCED_SOURCE, manifest(changed, namespace)) is None
    await api.create(BALANCED_SOURCE, manifest(spec, namespace))
    assert await api.dry_run(BALANCED_SOURCE, manifest(spec_json(parallelism=5), namespace)) is None
    assert "stoppingOffsets" in str(
        await api.dry_run(BALANCED_SOURCE, manifest(changed, namespace))
    )
    assert await api.count_up(BALANCED_SOURCE, namespace, "orders", "rebalanceNonce", most=1) == (
        0,
        1,
    )
    assert await api.count_up(BALANCED_SOURCE, namespace, "orders", "rebalanceNonce", most=1) == (
        1,
        0,
    )
