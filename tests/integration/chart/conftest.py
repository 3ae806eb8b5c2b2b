"""Helm, and documents as it renders them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed.helm import Helm
from testbed.versions import CHECKOUT

CHART = CHECKOUT / "charts" / "balanced-source"
Render = Callable[..., list[dict[str, Any]]]


@pytest.fixture(scope="package")
def chart() -> Path:
    return CHART


@pytest.fixture(scope="package")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    return Helm(tmp_path_factory.mktemp("helm"))


@pytest.fixture
def render(helm: Helm, chart: Path) -> Render:
    """Renders the chart with values."""

    def rendered(**values: Any) -> list[dict[str, Any]]:
        told = helm(
            "template",
            "demo",
            chart,
            "--namespace",
            "system",
            "--values",
            helm.values("values", values),
        )
        return [document for document in yaml.safe_load_all(told) if document]

    return rendered
