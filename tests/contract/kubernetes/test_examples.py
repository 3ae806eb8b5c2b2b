"""A real API server accepts every object of every example, also those that are not ours."""

from pathlib import Path

import pytest
import yaml

from testbed.control_plane import ControlPlane
from testbed.versions import CHECKOUT

EXAMPLES = sorted((CHECKOUT / "examples").glob("*.yaml"))
KEDA = "keda.sh/v1alpha1"
"""The API server of the tests does not have its kinds."""


@pytest.mark.integration
@pytest.mark.parametrize("which", ["real"], indirect=True)
@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.name)
def test_an_example_can_be_applied(control_plane: ControlPlane, namespace: str, file: Path) -> None:
    objects = [
        found for found in yaml.safe_load_all(file.read_text()) if found["apiVersion"] != KEDA
    ]

    for found in objects:
        control_plane.apply({**found, "metadata": {**found["metadata"], "namespace": namespace}})
        assert (
            control_plane.get(found["kind"].lower(), found["metadata"]["name"], namespace)
            is not None
        )
