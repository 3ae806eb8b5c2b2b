"""What the connector for files says about itself, and which calls it refuses."""

from pathlib import Path
from typing import Any

import pytest

from balanced_source.api import AsyncCall
from balanced_source.connectors.files import File, FilesSource, Format
from balanced_source.errors import ContractViolationError, TransientDiscoveryError
from balanced_source_adapters.files import connector
from balanced_source_adapters.files.connector import FilesCodec, FilesConnector, Lister, listed
from balanced_source_adapters.files.stores import LocalStore
from balanced_source_spark.contract.secrets import NO_SECRETS

SOURCE = FilesSource(paths=("/in/*.txt",), kind_of_file=Format.TEXT)


class OddCall(AsyncCall):
    """No listing."""


class Unreadable(LocalStore):
    """A store that cannot be looked at."""

    def exists(self, base: str) -> bool:
        raise PermissionError(13, "Permission denied.")


def test_calls_are_written_by_the_codec_of_files() -> None:
    assert isinstance(FilesConnector().codec, FilesCodec)
    call = SOURCE.list_page(1, None)
    assert FilesConnector().codec.call_from_json(FilesCodec().call_to_json(call)) == call


def test_only_listings_are_executed_and_written() -> None:
    odd: Any = OddCall()
    with pytest.raises(ContractViolationError, match="cannot execute a OddCall"):
        Lister(NO_SECRETS)(odd)
    with pytest.raises(ContractViolationError, match="a OddCall is not a listing of files"):
        FilesCodec().call_to_json(odd)
    with pytest.raises(ContractViolationError, match="a OddCall is not a listing of files"):
        FilesCodec().result_from_json(odd, {})


def test_a_folder_that_cannot_be_looked_at_is_named(tmp_path: Path) -> None:
    call = FilesSource(paths=(f"{tmp_path}/in",), kind_of_file=Format.TEXT).list_page(1, None)
    with pytest.raises(
        TransientDiscoveryError, match=r"cannot look at /.*/in: .*Permission denied$"
    ):
        list(listed(call, Unreadable()))


def test_one_folder_that_cannot_be_looked_at_hides_no_sink_in_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    class Half(LocalStore):
        def exists(self, base: str) -> bool:
            asked.append(base)
            if "/a/" in base:
                raise OSError("no answer")
            return super().exists(base)

    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(connector, "store_of", lambda *_: Half())
    paths = (f"{tmp_path}/a", f"{tmp_path}/b")
    Lister(NO_SECRETS)(FilesSource(paths=paths, kind_of_file=Format.TEXT).list_page(1, None))

    sinks = [base for base in asked if base.endswith("_spark_metadata")]
    assert sinks == [f"{tmp_path}/a/_spark_metadata", f"{tmp_path}/b/_spark_metadata"]


def test_a_file_keeps_its_identity() -> None:
    """The base of the codec: what is written is read again."""
    split = SOURCE.create_split(("files", "/in/a.txt", 0), None, {"id": "1-5", "stop": 5})
    assert split.file == File(1, "/in/a.txt", 5)
