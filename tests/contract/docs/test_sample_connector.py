"""The project of the sample connector: its own tests pass, and its manifest is valid."""

import importlib.util
import sys
from types import ModuleType

import pytest

from balanced_source_adapters import connectors
from balanced_source_adapters.connectors import Connectors
from balanced_source_adapters.registrations import Registration
from balanced_source_operator.contract import choice, half
from balanced_source_operator.validation.manifests import check_text
from testbed.versions import CHECKOUT

PROJECT = CHECKOUT / "examples" / "connector"


def _loaded() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "test_httplog", PROJECT / "tests" / "test_httplog.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


_tests = _loaded()
TestHttpLogHalf = _tests.TestHttpLogHalf
TestHttpLogSplitReader = _tests.TestHttpLogSplitReader
TestHttpLogEnumerator = _tests.TestHttpLogEnumerator
TestHttpLogSerializer = _tests.TestHttpLogSerializer
test_a_config_becomes_a_source = _tests.test_a_config_becomes_a_source


def test_no_test_of_the_project_is_left_out() -> None:
    found = {name for name in vars(_tests) if name.startswith(("Test", "test_"))}

    assert found <= set(globals())


def test_its_manifest_is_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = Registration(
        kind="httplog",
        reference="balanced_source_httplog.connector:HttpLogConnector",
        package="balanced-source-httplog",
    )
    found = Connectors([entry])
    for user in (half, choice, connectors):
        monkeypatch.setattr(user, "installed", lambda: found)
    text = (PROJECT / "logs.yaml").read_text(encoding="utf-8")

    report = check_text(text, "logs.yaml")
    assert report.problems == ()
    assert report.checked

    wrong = check_text(text.replace("discoveryInterval", "discoveryIntervall"), "logs.yaml")
    assert "discoveryIntervall" in str(wrong.problems[0]), "the connector itself has checked it"
