"""Which channel a query gets: a folder, the API server, or a coordinator of its own."""

from pathlib import Path
from typing import Any

import lightkube
import pytest
from lightkube import KubeConfig

from balanced_source_spark.channels import folder, kubernetes
from balanced_source_spark.channels.embedded import EmbeddedChannel
from balanced_source_spark.channels.factory import open_channel
from balanced_source_spark.options import Options, parse_options

EMBEDDED = {"kafka.bootstrap.servers": "b:9092", "subscribe": "t"}


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Channels that were made, by name, with their arguments."""
    found: list[Any] = []

    def noted(name: str) -> Any:
        return lambda *given, **more: found.append((name, given, more))

    monkeypatch.setattr(folder, "FolderChannel", noted("folder"))
    monkeypatch.setattr(kubernetes, "KubernetesChannel", noted("kubernetes"))
    monkeypatch.setattr(lightkube, "Client", lambda **_: "client")
    monkeypatch.setattr(KubeConfig, "from_service_account", lambda *_: "config")
    return found


def test_a_folder_goes_before_the_name_of_a_source(made: list[Any], tmp_path: Path) -> None:
    open_channel(Options(assignment_dir=tmp_path, source="orders", uid="u"))
    open_channel(Options(assignment_dir=tmp_path))

    (name, given, more), (_, _, without) = made
    assert (name, given, more) == ("folder", (tmp_path,), {"source": "u"})
    assert without["source"]


def test_a_source_of_an_operator_is_followed_at_the_api_server(made: list[Any]) -> None:
    open_channel(Options(source="orders", namespace="shop", uid="u", host="2"))

    assert made == [
        (
            "kubernetes",
            ("client",),
            {"namespace": "shop", "source": "orders", "uid": "u", "host": "2"},
        )
    ]


@pytest.mark.parametrize("is_durable", [False, True])
def test_a_query_without_an_operator_decides_by_itself(tmp_path: Path, *, is_durable: bool) -> None:
    folder_of_state = {"statedir": str(tmp_path)} if is_durable else {}
    options = parse_options({**EMBEDDED, "parallelism": "3", **folder_of_state})

    channel: Any = open_channel(options)

    assert isinstance(channel, EmbeddedChannel)
    assert channel.is_durable is is_durable
    assert channel.coordinator.state.parallelism == 3
