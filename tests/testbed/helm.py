"""Helm against a control plane of the testbed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from testbed.builds import Builder
from testbed.commands import run
from testbed.kubectl import ADMIN, Kubectl

_TIMEOUT = 600.0  # seconds; the longest is an install that waits for pods


class Helm:
    """The program `helm`, with a folder of its own for what it remembers.

    Args:
        folder: gets its caches and the values of each release.
        builder: where the program comes from.
        control_plane: where releases go; None for what needs no cluster.
        program: `helm`, which is version 3, or `helm4`.
    """

    def __init__(
        self,
        folder: Path,
        *,
        builder: Builder | None = None,
        control_plane: Kubectl | None = None,
        program: str = "helm",
    ) -> None:
        self.program = (builder or Builder()).ensure(program)[program]
        self._folder = folder
        self._control_plane = control_plane
        folder.mkdir(parents=True, exist_ok=True)

    def __call__(self, *arguments: str | Path) -> str:
        """Run helm and return what it prints.

        Raises:
            CommandError: it failed.
        """
        homes = {
            f"HELM_{name}_HOME": str(self._folder / name.lower())
            for name in ("CACHE", "CONFIG", "DATA")
        }
        return run([self.program, *arguments, *self._cluster()], env=homes, timeout=_TIMEOUT)

    def values(self, name: str, content: Mapping[str, Any]) -> Path:
        """A file with values, for `--values`."""
        path = self._folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump(dict(content)))
        return path

    def _cluster(self) -> list[str]:
        return (
            ["--kubeconfig", str(self._control_plane.kubeconfig(ADMIN))]
            if self._control_plane
            else []
        )
