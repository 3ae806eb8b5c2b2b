"""Who a driver is for the API server, and which driver makes calls for the operator."""

from typing import Any

import pytest
from lightkube import KubeConfig
from lightkube.core.exceptions import ConfigError

from balanced_source_spark.channels.errors import ChannelError
from balanced_source_spark.channels.kubernetes import in_cluster_config
from balanced_source_spark.driver_calls import DriverCalls
from balanced_source_spark.options import Options
from balanced_source_spark.planner_parts import _driver_calls

TOKEN = "KUBERNETES_AUTH_SERVICEACCOUNT_TOKEN"  # noqa: S105 - a name


@pytest.fixture(autouse=True)
def _configs(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KUBECONFIG", TOKEN):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(KubeConfig, "from_file", lambda path: f"file {path}")
    monkeypatch.setattr(
        KubeConfig, "from_service_account", lambda path="of the pod": f"account {path}"
    )


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, "account of the pod"),
        ({TOKEN: "/run/token/file"}, "account /run/token"),
        ({"KUBECONFIG": "/home/me/config"}, "file /home/me/config"),
        ({"KUBECONFIG": "/home/me/config", TOKEN: "/run/token/file"}, "file /home/me/config"),
    ],
)
def test_a_kubeconfig_goes_before_the_account_of_the_pod(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], expected: str
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    found: Any = in_cluster_config()

    assert found == expected


@pytest.mark.parametrize("error", [ConfigError("no account"), FileNotFoundError("token"), KeyError])
def test_missing_access_is_named(monkeypatch: pytest.MonkeyPatch, error: Any) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setattr(KubeConfig, "from_service_account", fail)

    with pytest.raises(ChannelError, match="no access to the API server is configured"):
        in_cluster_config()


@pytest.mark.parametrize(
    ("source", "host", "makes_calls"),
    [(None, "0", False), ("orders", "0", True), ("orders", "1", False)],
)
def test_only_the_first_driver_makes_calls_for_an_operator(
    source: str | None, host: str, *, makes_calls: bool
) -> None:
    """Without an operator, local mode makes them by itself."""
    found = _driver_calls(Options(source=source, host=host))

    assert isinstance(found, DriverCalls) is makes_calls
