"""Secrets as folders of files."""

import base64
from pathlib import Path

import pytest

from balanced_source.errors import InvalidSpecError
from balanced_source_adapters.mounted_secrets import MountedSecrets
from balanced_source_operator.resources.kinds import SECRET
from balanced_source_operator.runtime.secrets import SecretCache
from balanced_source_spark.contract.secrets import WHOLE_FOLDER, QuerySecrets
from support.fake_kubernetes import FakeKubernetes

STRIMZI = {
    "user.crt": b"PEM\n",
    "user.key": b"PEM",
    "user.p12": bytes(range(256)),
    "user.password": b"x",
}
"""Secret of a KafkaUser; the key store for Java is no text."""

READ = {"user.crt": "PEM", "user.key": "PEM", "user.password": "x"}


def test_files_are_properties_and_what_kubernetes_adds_is_not(tmp_path: Path) -> None:
    folder = tmp_path / "kafka"
    (folder / "..2026").mkdir(parents=True)
    (folder / "..data").symlink_to("..2026")
    (folder / "..2026" / "sasl.password").write_text("p\n")
    (folder / "sasl.password").symlink_to("..data/sasl.password")

    assert MountedSecrets(tmp_path).read("kafka") == {"sasl.password": "p"}


def test_an_absent_secret_is_named(tmp_path: Path) -> None:
    """Not mounted: no one named it when the pod started.

    Mounted and empty: no one has created it.
    """
    (tmp_path / "empty").mkdir()

    for name, says in (
        ("other", "secret other is not mounted"),
        ("empty", "secret empty does not exist or is empty"),
    ):
        with pytest.raises(LookupError, match=says):
            MountedSecrets(tmp_path).read(name)


@pytest.mark.parametrize("name", ["..", "../outside", "/etc", "a/../../outside", ""])
def test_a_name_never_leads_out_of_the_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "sasl.password").write_text("p")

    with pytest.raises(InvalidSpecError, match="not a valid name of a Kubernetes object"):
        MountedSecrets(tmp_path / "secrets").read(name)


def test_a_key_store_beside_the_properties_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "user").mkdir()
    for name, value in STRIMZI.items():
        (tmp_path / "user" / name).write_bytes(value)

    assert MountedSecrets(tmp_path).read("user") == READ
    assert QuerySecrets(folder=tmp_path).read(WHOLE_FOLDER) == READ
    assert QuerySecrets(folder=tmp_path / "user").read(WHOLE_FOLDER) == READ


async def test_the_operator_also_omits_the_field() -> None:
    server = FakeKubernetes()
    data = {name: base64.b64encode(value).decode() for name, value in STRIMZI.items()}
    server.add(SECRET, {"metadata": {"namespace": "default", "name": "user"}, "data": data})
    cache = SecretCache(server.client(), "default")
    await cache.load(["user"])

    assert cache.read("user") == READ


async def test_a_secret_that_does_not_exist_says_where_it_is_missing() -> None:
    server = FakeKubernetes()
    cache = SecretCache(server.client(), "jobs")
    await cache.load(["user"])
    with pytest.raises(LookupError, match="secret user does not exist in namespace jobs: create"):
        cache.read("user")
