"""What Helm says after an installation; no cluster."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from testbed.helm import Helm
from testbed.versions import OURS

pytestmark = pytest.mark.integration
Notes = Callable[..., str]


@pytest.fixture
def notes(chart: Path, tmp_path: Path) -> Notes:
    """Pretends to install the chart; returns the notes. Helm 3 would ask a cluster."""
    helm = Helm(tmp_path, program="helm4")

    def printed(**values: Any) -> str:
        file = helm.values("notes", values)
        text = helm("install", "demo", chart, "--values", file, "--dry-run=client")
        return text.partition("\nNOTES:\n")[2]

    return printed


def test_both_spark_operators_are_named(notes: Notes) -> None:
    text = notes()
    assert "sparkoperator.k8s.io/v1beta2" in text
    assert "spec.application.provider: Apache" in text


@pytest.mark.parametrize("image", [{}, {"tag": "1.0"}])
def test_an_image_that_no_node_can_pull_is_a_warning(notes: Notes, image: dict[str, str]) -> None:
    name = f"registry.example.org/balanced-source/operator:{image.get('tag', OURS)}"
    text = notes(image=image)
    assert f"WARNING: the image {name} is a placeholder" in text
    assert "set image.repository to it" in text


@pytest.mark.parametrize(
    "values",
    [
        {"image": {"repository": "mirror.test/operator"}},
        {"image": {"registry": "mirror.test"}},
        {"global": {"imageRegistry": "mirror.test"}},
    ],
)
def test_an_image_of_ones_own_is_none(notes: Notes, values: dict[str, Any]) -> None:
    assert "WARNING" not in notes(**values)
