"""What this installation is, and which connectors it has."""

import importlib.metadata
from types import SimpleNamespace
from typing import Any

import pytest

from balanced_source.errors import ConnectorError
from balanced_source_adapters import version
from balanced_source_adapters.registrations import (
    BUILT_IN,
    Registration,
    Registrations,
    built_in_registrations,
)


def test_a_folder_on_the_path_has_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    monkeypatch.setattr(importlib.metadata, "metadata", missing)

    assert version.installed_version() == "0+unknown"
    assert version.documentation({}) == ""


@pytest.mark.parametrize(
    ("links", "address"),
    [
        (["Source, https://a", "Documentation, https://b"], "https://b/"),
        (["Documentation, https://docs.example.org/b/latest/"], ""),
        (["Source, https://a"], ""),
        (None, ""),
    ],
)
def test_the_address_of_the_documentation_is_that_of_the_package(
    monkeypatch: pytest.MonkeyPatch, links: list[str] | None, address: str
) -> None:
    monkeypatch.setattr(importlib.metadata, "version", lambda _: "1.2.3")
    monkeypatch.setattr(
        importlib.metadata, "metadata", lambda _: SimpleNamespace(get_all=lambda _: links)
    )

    assert version.installed_version() == "1.2.3"
    assert version.documentation({}) == address


def test_a_team_sets_the_address_of_its_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BALANCED_SOURCE_DOCUMENTATION_URL", raising=False)
    monkeypatch.setattr(version, "_of_the_package", lambda: "")
    assert version.page("operations") == "docs/operations.md"

    monkeypatch.setenv("BALANCED_SOURCE_DOCUMENTATION_URL", "https://wiki.test/bs")

    assert version.documentation() == "https://wiki.test/bs/"
    assert version.page("operations") == "https://wiki.test/bs/operations/"


@pytest.mark.parametrize(
    ("distribution", "package"),
    [(SimpleNamespace(name="odd", version="1.0"), "odd 1.0"), (None, "an unknown package")],
)
def test_a_registration_names_its_package(distribution: Any, package: str) -> None:
    entry: Any = SimpleNamespace(name="tapes", value="odd_source.half:Half", dist=distribution)

    found = Registration.of(entry)

    assert found == Registration(kind="tapes", reference="odd_source.half:Half", package=package)
    assert found.module == "odd_source"


def tapes(reference: str, package: str = "odd 1.0") -> Registration:
    return Registration(kind="tapes", reference=reference, package=package)


def test_connectors_of_all_packages_are_found_by_kind() -> None:
    own = built_in_registrations()
    found = Registrations([*own, *own, tapes("odd_source:Half")])

    assert [one.kind for one in own] == list(BUILT_IN)
    assert found.kinds == tuple(sorted([*BUILT_IN, "tapes"]))
    assert sorted(one.kind for one in found) == sorted([*BUILT_IN, "tapes"])
    assert found.kind_of("odd_source.half") == "tapes"
    assert found.of("tapes").package == "odd 1.0"
    assert found.of("kafka").reference == BUILT_IN["kafka"]


def test_a_kind_that_two_packages_register_names_both() -> None:
    found = Registrations([tapes("odd_source:Half"), tapes("even_source:Half", "even 2.0")])

    with pytest.raises(
        ConnectorError, match=r"odd 1\.0 \(odd_source:Half\) and even 2\.0 \(even_source:Half\)"
    ):
        found.of("tapes")


@pytest.mark.parametrize(("kind", "hint"), [("tape", "did you mean tapes"), ("unlike", r"\)\. A")])
def test_a_kind_that_is_not_installed_is_named(kind: str, hint: str) -> None:
    with pytest.raises(ConnectorError, match=hint):
        Registrations([tapes("odd_source:Half")]).of(kind)
