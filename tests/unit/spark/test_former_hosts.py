"""Which other hosts hold splits, by their Spark checkpoints in a folder that a JVM would list."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from balanced_source.documents import stream_offset
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source_spark.former_hosts import former_hosts

HOLDS = StreamOffset(epoch=9, positions={("c", "t", 0): 4})
RETAINS = StreamOffset(epoch=9, retained={("c", "t", 0): 4})
NOTHING = StreamOffset(epoch=9)


class JavaError:
    """An exception of Java."""

    _target_id = "o1"

    def __init__(self, name: str) -> None:
        self._name = name

    def getClass(self) -> Any:  # noqa: N802 - Java's name
        return SimpleNamespace(getName=lambda: self._name)


def session(refused: str = "") -> Any:
    """A Spark session whose JVM sees the local folders.

    Args:
        refused: part of the locations that may not be looked at.
    """

    def reading(read: Callable[[Path], Any]) -> Callable[[Path], Any]:
        def call(path: Path) -> Any:
            if refused and refused in str(path):
                raise Py4JJavaError("denied", JavaError("java.nio.file.AccessDeniedException"))
            if not path.exists():
                raise Py4JJavaError("absent", JavaError("java.io.FileNotFoundException"))
            return read(path)

        return call

    def path_of(location: str) -> Any:
        path = Path(location)
        files = SimpleNamespace(
            listStatus=lambda _: reading(_listed)(path), open=lambda _: reading(_opened)(path)
        )
        return SimpleNamespace(getFileSystem=lambda _: files)

    utils = SimpleNamespace(readFullyToByteArray=lambda stream: stream.content)
    hadoop = SimpleNamespace(fs=SimpleNamespace(Path=path_of), io=SimpleNamespace(IOUtils=utils))
    jvm = SimpleNamespace(org=SimpleNamespace(apache=SimpleNamespace(hadoop=hadoop)))
    settings = SimpleNamespace(hadoopConfiguration=dict)
    return SimpleNamespace(sparkContext=SimpleNamespace(_jvm=jvm, _jsc=settings))


def _listed(folder: Path) -> list[Any]:
    def status(name: str) -> Any:
        return SimpleNamespace(getPath=lambda: SimpleNamespace(getName=lambda: name))

    return [status(entry.name) for entry in folder.iterdir()]


def _opened(file: Path) -> Any:
    return SimpleNamespace(content=file.read_bytes(), close=lambda: None)


def wrote(checkpoint: Path, number: int, offset: StreamOffset | str) -> None:
    """Spark has begun a micro-batch up to an offset."""
    text = offset if isinstance(offset, str) else json.dumps(stream_offset.to_json(offset))
    (checkpoint / "offsets").mkdir(parents=True, exist_ok=True)
    (checkpoint / "offsets" / str(number)).write_text(f"v1\n{{}}\n{text}")


def test_hosts_that_hold_splits_are_found_in_their_order(tmp_path: Path) -> None:
    for host in ("10", "2"):
        wrote(tmp_path / "hosts" / host, 0, HOLDS)
    (tmp_path / "hosts" / "3" / "offsets").mkdir(parents=True)
    (tmp_path / "hosts" / "4" / "offsets" / ".tmp").mkdir(parents=True)
    wrote(tmp_path / "hosts" / "notes", 0, HOLDS)

    assert former_hosts(session(), str(tmp_path), host="0") == ("2", "10")
    assert former_hosts(session(), str(tmp_path), host="2") == ("10",)

    wrote(tmp_path, 0, HOLDS)
    assert former_hosts(session(), str(tmp_path), host="10") == ("0", "2")


def test_a_source_that_has_read_nothing_has_none(tmp_path: Path) -> None:
    assert former_hosts(session(), str(tmp_path / "nothing"), host="0") == ()


@pytest.mark.parametrize(
    ("newest", "is_found"),
    [
        (NOTHING, False),
        (RETAINS, True),
        ("newer software", True),
        ("[]", True),
        ('{"version": 999}', True),
    ],
)
def test_the_newest_offset_counts(
    tmp_path: Path, newest: StreamOffset | str, *, is_found: bool
) -> None:
    checkpoint = tmp_path / "hosts" / "1"
    for number, offset in ((9, HOLDS), (10, newest)):
        wrote(checkpoint, number, offset)

    assert former_hosts(session(), str(tmp_path), host="0") == (("1",) if is_found else ())


def test_an_offset_that_is_cut_off_counts_as_splits(tmp_path: Path) -> None:
    wrote(tmp_path / "hosts" / "1", 0, HOLDS)
    (tmp_path / "hosts" / "1" / "offsets" / "1").write_text("v1\n")

    assert former_hosts(session(), str(tmp_path), host="0") == ("1",)


@pytest.mark.parametrize("refused", ["hosts", "offsets/0"])
def test_checkpoints_that_may_not_be_looked_at_are_left_to_spark(
    tmp_path: Path, refused: str, capsys: pytest.CaptureFixture[str]
) -> None:
    wrote(tmp_path / "hosts" / "1", 0, HOLDS)

    assert former_hosts(session(refused), str(tmp_path), host="0") == ()
    assert "cannot look for checkpoints of other hosts" in capsys.readouterr().out
