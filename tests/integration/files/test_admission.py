"""Which paths of files a real API server accepts: those of one kind of store."""

from collections.abc import Iterator
from typing import Any

import pytest

from support.builders import source_body
from testbed.control_plane import ControlPlane
from testbed.errors import CommandError
from testbed.versions import CHECKOUT

pytestmark = pytest.mark.integration

LAKE = "abfss://raw@lake.dfs.core.windows.net/in"


@pytest.fixture(scope="module")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with ControlPlane(
        tmp_path_factory.mktemp("control-plane"), crds=[CHECKOUT / "crds"]
    ) as started:
        yield started


def manifest(name: str, paths: list[str], more: dict[str, Any]) -> dict[str, Any]:
    body = source_body(name, source={"files": {"paths": paths, "format": "Text", **more}})
    body["metadata"] = {"name": name, "namespace": "default"}
    return body


@pytest.mark.parametrize(
    ("name", "paths", "more"),
    [
        ("volumes", ["/in", "file:///in"], {}),
        ("s3", ["s3://b/in", "s3a://b/in"], {}),
        ("gcs", ["gs://b/in/*"], {"gcs": {"endpoint": "http://g:1", "secret": "k"}}),
        ("azure", [LAKE, "az://raw/x"], {"azure": {"account": "lake", "secret": "k"}}),
        ("hdfs", ["hdfs://n:8020/in", "hdfs:///in"], {}),
    ],
)
def test_paths_of_one_store_are_accepted(
    control_plane: ControlPlane, name: str, paths: list[str], more: dict[str, Any]
) -> None:
    control_plane.apply(manifest(name, paths, more))


@pytest.mark.parametrize(
    ("paths", "more", "says"),
    [
        (["/in", "gs://b/in"], {}, "stores of one kind"),
        (["s3://b/in", "gs://b/in"], {}, "stores of one kind"),
        ([LAKE, "hdfs://n:1/in"], {}, "stores of one kind"),
        (["gs://b/in", "hdfs://n:1/in"], {}, "stores of one kind"),
        (["wasb://b/in"], {}, "paths"),
        (["abfss://raw/in"], {}, "paths"),
        (["gs://b/in"], {"gcs": {"endpoint": "http://g:1/path"}}, "endpoint"),
        (["az://raw/in"], {"azure": {"account": "no.name"}}, "account"),
    ],
)
def test_others_are_refused(
    control_plane: ControlPlane, paths: list[str], more: dict[str, Any], says: str
) -> None:
    with pytest.raises(CommandError, match=says):
        control_plane.apply(manifest("wrong", paths, more))
