"""A reader follows docs/writing-a-connector.md from its top, beside the product's wheel."""

import json
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from support import bare_environment
from support.bare_environment import BareEnvironment
from support.builders import spec_json
from support.connector_page import Block, blocks, files
from support.wheels import SAMPLE
from testbed.versions import CHECKOUT

WHEELS: Final = "/path/to/wheels"
"""What a reader replaces by the path of a folder."""


@pytest.mark.timeout(900)
def test_every_block_of_the_page_works_in_a_bare_environment(tmp_path: Path) -> None:
    bare_environment.build(tmp_path / "build" / "wheels", CHECKOUT)
    environment = bare_environment.make(tmp_path / "environment")
    environment.run("! python -c 'import balanced_source' 2> /dev/null", cwd=tmp_path)
    project = tmp_path / "project"
    project.mkdir()
    for name, code in files().items():
        (project / name).write_text(code)

    printed = {block.code: follow(block, environment, project) for block in blocks()}

    assert sorted(path.name for path in (project / "lines").glob("*lines*")) == [
        "lines_connector-1.0.0.dist-info",
        "lines_connector.py",
        "lines_operator.py",
    ]
    assert "folders" in printed["balanced-source reference lines"]
    assert list(tmp_path.glob("tmp*/out/*.parquet"))


def follow(block: Block, environment: BareEnvironment, project: Path) -> str:
    """Do what a reader does with a block; returns what it prints."""
    match block.language:
        case "python" | "toml":
            return ""  # in a file
        case "sh":
            code = block.code.replace(WHEELS, str(project.parent / "build" / "wheels"))
            return environment.run(code, cwd=project)
        case "yaml":
            return validated(block.code, environment, project.parent)
        case "dockerfile":
            return linted(block.code)
    raise AssertionError(f"no one knows what a reader does with a block in {block.language}")


def validated(fragment: str, environment: BareEnvironment, folder: Path) -> str:
    """Check a part of a spec against the CRD, and by its connector, which is the sample."""
    wheels = bare_environment.build(folder / "sample", SAMPLE)
    environment.run(f"pip install --no-deps {wheels}/*.whl", cwd=folder)
    pipeline = {
        "checkpointLocation": "/data/checkpoint",
        "sink": {"options": {"path": "/data/out"}},
    }
    application = {**spec_json()["application"], "pipeline": pipeline}
    manifest: dict[str, Any] = {
        "apiVersion": "balancedsource.io/v1alpha1",
        "kind": "BalancedSource",
        "metadata": {"name": "logs", "namespace": "default"},
        "spec": spec_json(application=application, **yaml.safe_load(fragment)),
    }
    return environment.run(
        "balanced-source validate --server never -f -", cwd=folder, text=json.dumps(manifest)
    )


def linted(dockerfile: str) -> str:
    """Check the lines of a Dockerfile: to build the image needs a container engine."""
    done = subprocess.run(  # noqa: S603 - of the locked environment
        [str(CHECKOUT / ".venv" / "bin" / "hadolint"), "-"],
        input=dockerfile,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout
