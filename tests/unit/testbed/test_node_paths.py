from pathlib import Path

import pytest

from testbed.process_node.launcher import make_mount_points
from testbed.process_node.paths import PathMap

PATHS = PathMap(
    {"/opt/spark": "/venv/pyspark", "/opt/spark/conf": "/pod/conf", "/data/": "/pod/data"}
)


@pytest.mark.parametrize(
    ("text", "rewritten"),
    [
        ("/opt/spark/bin/spark-submit", "/venv/pyspark/bin/spark-submit"),
        ("local:///opt/spark/examples/pi.py", "local:///venv/pyspark/examples/pi.py"),
        ("file:/data", "file:/pod/data"),
        ("-cp /opt/spark/conf:/opt/spark/jars/*", "-cp /pod/conf:/venv/pyspark/jars/*"),
        ("/opt/spark-kafka/a.jar", "/opt/spark-kafka/a.jar"),
        ("/opt/spark2 /database /my/data", "/opt/spark2 /database /my/data"),
        ("--dir=/data", "--dir=/pod/data"),
    ],
)
def test_whole_paths_are_rewritten_longest_first(text: str, rewritten: str) -> None:
    assert PATHS.rewrite(text) == rewritten


def test_only_spark_settings_are_rewritten_among_files() -> None:
    assert PATHS.rewrite_file("spark.properties", b"a=/opt/spark/x") == b"a=/venv/pyspark/x"
    assert PATHS.rewrite_file("state.json", b"/opt/spark") == b"/opt/spark"


def test_without_paths_nothing_changes() -> None:
    assert PathMap({}).rewrite("/opt/spark") == "/opt/spark"


def test_mount_points_are_made_in_the_nodes_own_folders_only(tmp_path: Path) -> None:
    own, host = tmp_path / "node", tmp_path / "host"
    for folder in (own / "shared", own / "sub", host):
        folder.mkdir(parents=True)
    (own / "file").touch()
    make_mount_points(
        {
            "/shared": str(own / "shared"),
            "/shared/deep/sub": str(own / "sub"),
            "/shared/file": str(own / "file"),
            "/host": str(host),
            "/host/sub": str(own / "sub"),
        },
        own,
    )
    assert (own / "shared" / "deep" / "sub").is_dir()
    assert (own / "shared" / "file").is_file()
    assert list(host.iterdir()) == []
