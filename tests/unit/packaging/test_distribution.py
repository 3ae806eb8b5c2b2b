"""What the distribution declares is what the code imports, no more and no less."""

import ast
import importlib.metadata
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import balanced_source_spark
from testbed.versions import CHECKOUT

PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
OPERATOR, SPARK = CHECKOUT / "operator" / "src", CHECKOUT / "spark_app" / "src"
OURS = {
    "balanced_source",
    "balanced_source_adapters",
    "balanced_source_operator",
    "balanced_source_spark",
    "pyspark_balanced",
}
NEEDED_BY = {
    "operator": (OPERATOR / "balanced_source_adapters", OPERATOR / "balanced_source_operator"),
    "spark": (
        OPERATOR / "balanced_source_adapters",
        SPARK / "balanced_source_spark",
        SPARK / "pyspark_balanced",
    ),
    "testing": (OPERATOR / "balanced_source" / "testing",),
}
ELSEWHERE = {"pyspark", "py4j", "balanced_source_native"}
"""Comes with the Spark installation, or is an extra of its own."""

ONLY_ON_SPARK = {"fastavro", "obstore", "pyarrow"}
"""Imported by adapters for drivers alone, which have the extra `spark`; without it they say what is
missing."""

DISTRIBUTIONS = {"cel": "common-expression-language", "yaml": "pyyaml"}


def imported(folder: Path) -> Iterator[str]:
    """Top-level modules from elsewhere that a package imports, also within functions."""
    for file in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            match node:
                case ast.Import(names=names):
                    yield from (name.name.partition(".")[0] for name in names)
                case ast.ImportFrom(module=str(module), level=0):
                    yield module.partition(".")[0]
                case _:
                    pass


def needed(folders: tuple[Path, ...]) -> set[str]:
    modules = {name for folder in folders for name in imported(folder)}
    return {_distribution(name) for name in modules - OURS - ELSEWHERE - sys.stdlib_module_names}


def _distribution(module: str) -> str:
    return DISTRIBUTIONS.get(module, module.replace("_", "-"))


def declared(extra: str) -> set[str]:
    names = {
        re.split(r"[^A-Za-z0-9._-]", text)[0].lower()
        for text in PROJECT["optional-dependencies"][extra]
    }
    return names - {PROJECT["name"]}  # another extra of ours


@pytest.mark.parametrize("extra", NEEDED_BY)
def test_an_extra_declares_what_its_packages_import(extra: str) -> None:
    elsewhere = ONLY_ON_SPARK if extra == "operator" else set()
    assert declared(extra) == needed(NEEDED_BY[extra]) - elsewhere


def test_the_library_needs_nothing() -> None:
    assert needed((OPERATOR / "balanced_source",)) == needed(NEEDED_BY["testing"])
    assert PROJECT["dependencies"] == []


def test_every_import_names_an_installed_distribution() -> None:
    for name in needed(NEEDED_BY["operator"]) | needed(NEEDED_BY["spark"]):
        assert importlib.metadata.version(name)


def test_all_parts_have_one_version() -> None:
    cargo = tomllib.loads(
        (CHECKOUT / "spark_app" / "native" / "Cargo.toml").read_text(encoding="utf-8")
    )
    chart = (CHECKOUT / "charts" / "balanced-source" / "Chart.yaml").read_text(encoding="utf-8")
    version = PROJECT["version"]

    assert cargo["package"]["version"] == version
    assert re.findall(r"^(?:version|appVersion): (\S+)$", chart, re.MULTILINE) == [version, version]
    assert PROJECT["optional-dependencies"]["native"] == [f"balanced-source-native=={version}"]


def test_the_spark_side_brings_the_native_reader_where_it_has_a_wheel() -> None:
    (native,) = (
        text
        for text in PROJECT["optional-dependencies"]["spark"]
        if text.startswith("balanced-source[")
    )

    requirement = Requirement(native)

    assert (requirement.name, requirement.extras) == ("balanced-source", {"native"})
    assert requirement.marker is not None
    linux = {"sys_platform": "linux", "platform_machine": "x86_64"}
    assert requirement.marker.evaluate(linux)
    assert not requirement.marker.evaluate({**linux, "platform_machine": "riscv64"})
    assert not requirement.marker.evaluate({**linux, "sys_platform": "darwin"})


def test_every_package_is_in_the_wheel() -> None:
    tool = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]

    packed = {Path(name).name for name in tool["hatch"]["build"]["targets"]["wheel"]["packages"]}

    assert packed == OURS


def test_the_version_can_be_asked_for() -> None:
    assert balanced_source_spark.__version__ == importlib.metadata.version("balanced-source")
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        balanced_source_spark.nothing  # noqa: B018


def test_the_index_can_say_what_it_is_for() -> None:
    found = PROJECT["classifiers"]

    for group in (
        "Development Status",
        "Intended Audience",
        "Operating System",
        "Programming Language",
        "Topic",
    ):
        assert any(classifier.startswith(f"{group} :: ") for classifier in found), group


@pytest.mark.parametrize("page", ["docs/writing-a-connector.md", "examples/connector/README.md"])
def test_pages_copy_connectors_to_where_the_images_look_for_packages(page: str) -> None:
    dockerfile = (CHECKOUT / "Dockerfile").read_text(encoding="utf-8")
    version = re.search(r"^ARG PYTHON_IMAGE=python:(3\.\d+)-", dockerfile, re.MULTILINE)
    assert version is not None
    copied = re.findall(r"^(?:    )?COPY \w+ (\S+)$", (CHECKOUT / page).read_text(), re.MULTILINE)

    assert copied == [f"/opt/venv/lib/python{version[1]}/site-packages"]
    assert "python3 -m venv --without-pip /opt/venv" in dockerfile, "pip could not install it there"
