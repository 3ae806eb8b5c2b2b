"""The API server refuses names that lead elsewhere before the operator sees them."""

import pytest

from balanced_source_operator.kube.port import KubernetesApi, KubernetesError
from balanced_source_operator.resources.kinds import BALANCED_SOURCE
from support.hostile import FROM_CONFIG_MAP, Path, replaced

CLUSTER = {
    "name": "main",
    "bootstrapServers": "b:1",
    "propertiesFrom": [{"secretRef": {"name": "kafka"}}],
}
APPLICATION = {
    "image": "i",
    "sparkVersion": "4.2.0",
    "imagePullSecrets": ["registry"],
    "serviceAccount": "spark",
    "mainApplicationFile": "local:///app.py",
    "sparkConf": {"spark.ui.enabled": "false"},
    "pipeline": {"checkpointLocation": "/c"},
}
SPEC = {
    "source": {"kafka": {"clusters": [CLUSTER], "subscription": {"topics": ["a"]}}},
    "application": APPLICATION,
}
WITH_METADATA = {
    **SPEC,
    "source": {"kafka": {**FROM_CONFIG_MAP, "subscription": {"streams": ["a"]}}},
}

KAFKA = ("source", "kafka")
NAMES: list[Path] = [
    (*KAFKA, "clusters", 0, "name"),
    (*KAFKA, "clusters", 0, "bootstrapServers"),
    (*KAFKA, "clusters", 0, "propertiesFrom", 0, "secretRef", "name"),
    (*KAFKA, "subscription", "topics", 0),
    ("application", "image"),
    ("application", "imagePullSecrets", 0),
    ("application", "serviceAccount"),
    ("application", "sparkVersion"),
    ("application", "mainApplicationFile"),
    ("application", "sparkConf", "spark.ui.enabled", "#"),
]
OF_METADATA: list[Path] = [
    (*KAFKA, "clustersFrom", "configMapRef", "name"),
    (*KAFKA, "clustersFrom", "configMapRef", "key"),
]
CASES = [pytest.param(SPEC, path, id=".".join(map(str, path))) for path in NAMES]
CASES += [pytest.param(WITH_METADATA, path, id=".".join(map(str, path))) for path in OF_METADATA]


@pytest.mark.integration
@pytest.mark.parametrize("which", ["real"], indirect=True)
@pytest.mark.parametrize(("spec", "path"), CASES)
async def test_hostile_names_are_refused(
    api: KubernetesApi, namespace: str, spec: dict[str, object], path: Path
) -> None:
    def body(spec: dict[str, object]) -> dict[str, object]:
        metadata = {"namespace": namespace, "name": "orders"}
        kind = {"apiVersion": BALANCED_SOURCE.api_version, "kind": BALANCED_SOURCE.kind}
        return {**kind, "metadata": metadata, "spec": spec}

    for value in ("--conf x", "", "a\nb", "$(id) ; x"):
        with pytest.raises(KubernetesError, match="spec"):
            await api.create(BALANCED_SOURCE, body(replaced(spec, path, value)))
    await api.create(BALANCED_SOURCE, body(spec))
