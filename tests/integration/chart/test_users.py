"""The users that the chart's pods run as, on OpenShift and elsewhere; no cluster."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed.helm import Helm

pytestmark = pytest.mark.integration
Contexts = Callable[..., list[dict[str, Any]]]
IDS = {"runAsUser": 65532, "runAsGroup": 65532, "fsGroup": 65532}
REST = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}


@pytest.fixture
def contexts(helm: Helm, chart: Path) -> Contexts:
    """Renders the chart; returns the security contexts of the operator's pod and of the test's."""

    def rendered(*kinds_of_the_cluster: str, **values: Any) -> list[dict[str, Any]]:
        file = helm.values("users", values)
        more = [f"--api-versions={kind}" for kind in kinds_of_the_cluster]
        text = helm("template", "demo", chart, "--values", file, *more)
        pods = list(_pods(yaml.safe_load_all(text)))
        assert len(pods) == 2, "the operator and the test"
        return [pod["securityContext"] for pod in pods]

    return rendered


def _pods(documents: Iterator[dict[str, Any] | None]) -> Iterator[dict[str, Any]]:
    for document in documents:
        if document and document["kind"] == "Deployment":
            yield document["spec"]["template"]["spec"]
        elif document and document["kind"] == "Pod":
            yield document["spec"]


def test_pods_have_the_user_of_the_image(contexts: Contexts) -> None:
    assert contexts() == [{**REST, **IDS}] * 2


def test_openshift_chooses_the_user(contexts: Contexts) -> None:
    """Its policy `restricted-v2` refuses every id that is not of the namespace."""
    assert contexts("security.openshift.io/v1") == [REST] * 2


@pytest.mark.parametrize("field", IDS)
def test_a_chosen_id_stays_on_openshift(contexts: Contexts, field: str) -> None:
    chosen = {field: 1000740000}
    found = contexts("security.openshift.io/v1", podSecurityContext=chosen)
    assert found == [{**REST, **chosen}] * 2


def test_an_id_can_be_left_out_anywhere(contexts: Contexts) -> None:
    assert contexts(podSecurityContext=dict.fromkeys(IDS)) == [REST] * 2
