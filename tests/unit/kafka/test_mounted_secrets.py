"""Secrets as folders of files."""

from pathlib import Path

import pytest

from balanced_source.errors import InvalidSpecError
from balanced_source_adapters.mounted_secrets import MountedSecrets


def test_files_are_properties_and_what_kubernetes_adds_is_not(tmp_path: Path) -> None:
    folder = tmp_path / "kafka"
    (folder / "..2026").mkdir(parents=True)
    (folder / "..data").symlink_to("..2026")
    (folder / "..2026" / "sasl.password").write_text("p\n")
    (folder / "sasl.password").symlink_to("..data/sasl.password")

    assert MountedSecrets(tmp_path).read("kafka") == {"sasl.password": "p"}


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    """Not mounted: nobody named it when the pod started. Mounted and empty: nobody has created it."""
    (tmp_path / "empty").mkdir()

    for name, says in (("other", "secret other is not mounted"), ("empty", "secret empty does not exist or is empty")):
        with pytest.raises(LookupError, match=says):
            MountedSecrets(tmp_path).read(name)


@pytest.mark.parametrize("name", ["..", "../outside", "/etc", "a/../../outside", ""])
def test_a_name_never_leads_out_of_the_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "sasl.password").write_text("p")

    with pytest.raises(InvalidSpecError, match="not a valid name of a Kubernetes object"):
        MountedSecrets(tmp_path / "secrets").read(name)
