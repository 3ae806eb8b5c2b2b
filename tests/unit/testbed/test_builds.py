import dataclasses
import re
from pathlib import Path

import pytest

from testbed import builds, versions
from testbed.cache import Cache
from testbed.errors import BuildError

MODULES = {
    "etcd": ("go.etcd.io/etcd/server/v3", versions.ETCD),
    "k8s": ("k8s.io/kubernetes", versions.KUBERNETES),
    "spark-operator": ("github.com/kubeflow/spark-operator/v2", versions.SPARK_OPERATOR),
    "helm": ("helm.sh/helm/v3", versions.HELM),
    "helm4": ("helm.sh/helm/v4", versions.HELM_4),
    "keda": ("github.com/kedacore/keda/v2", versions.KEDA),
    "linearisable": ("github.com/anishathalye/porcupine", versions.PORCUPINE),
    "fake-gcs-server": ("github.com/fsouza/fake-gcs-server", versions.FAKE_GCS_SERVER),
    "coredns": ("github.com/coredns/coredns", versions.COREDNS),
}


# which needs nothing but Go
LOCKED = [family for family in builds.FAMILIES if family.name != "pause"]


@pytest.mark.parametrize("family", LOCKED, ids=lambda family: family.name)
def test_the_lock_files_pin_the_version_that_the_code_names(family: builds.Family) -> None:
    module, version = MODULES[family.name]
    assert family.version == version
    required = re.findall(rf"{re.escape(module)} v(\S+)", (family.folder / "go.mod").read_text())
    assert set(required) == {version}
    assert f"{module} v{version} h1:" in (family.folder / "go.sum").read_text()


def test_every_program_has_a_key_of_its_own() -> None:
    keys = [family.key(name) for family in builds.FAMILIES for name in family.packages]
    assert len(set(keys)) == len(keys)


def test_a_stamp_changes_the_key() -> None:
    family = builds.FAMILIES[0]
    other = builds.Family(
        name=family.name, version="0", packages=family.packages, stamps={"a.b": "1"}
    )
    assert family.key("etcd") != other.key("etcd")


def test_what_cuts_a_module_is_part_of_the_key(tmp_path: Path) -> None:
    family = next(family for family in builds.FAMILIES if family.name == "keda")
    assert family.cut is not None
    script = tmp_path / "other.py"
    script.write_text("# cuts something else\n")
    other = dataclasses.replace(family, cut=dataclasses.replace(family.cut, script=script))
    assert family.key("keda") != other.key("keda")


def test_an_unknown_part_is_rejected_before_anything_is_built(tmp_path: Path) -> None:
    builder = builds.Builder(Cache(tmp_path / "cache"))
    with pytest.raises(BuildError, match="minikube"):
        builder.ensure("etcd", "minikube")
    assert not (tmp_path / "cache").exists()


def test_everything_is_missing_from_an_empty_cache(tmp_path: Path) -> None:
    assert builds.Builder(Cache(tmp_path)).missing(builds.DEFAULT) == list(builds.DEFAULT)
