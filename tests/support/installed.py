"""A connector that counts as installed wherever a folder is on the path."""

from pathlib import Path


def register(folder: Path, kind: str, connector: str) -> None:
    """Make a folder that registers a connector where it is on the path.

    Args:
        folder: gets the description of a package.
        kind: of source, which is the package's name too.
        connector: module and class, as ``module:Class``.
    """
    info = folder / f"{kind}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {kind}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[balanced_source.connectors]\n{kind} = {connector}\n")
