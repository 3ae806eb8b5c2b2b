"""Each part of a hybrid source gets its own secrets, and none of another part."""

from pathlib import Path
from typing import Any

import pytest

from balanced_source.errors import InvalidSpecError
from balanced_source_spark.contract.secrets import WHOLE_FOLDER, QuerySecrets
from balanced_source_spark.options import parse_options
from unit.hybrid.test_spark_options import FILES, KAFKA, options

S3 = {**FILES, "path": "s3://bucket/in", "s3Secret": "store"}


def write(folder: Path, **values: str) -> None:
    folder.mkdir(parents=True)
    for name, value in values.items():
        (folder / name).write_text(value)


def secrets(*parts: dict[str, Any], **more: str) -> QuerySecrets:
    return parse_options({**options(*parts), **more}).secrets


def test_kafka_gets_no_keys_of_the_store_of_its_history(tmp_path: Path) -> None:
    """Its client would refuse to start with them."""
    write(tmp_path / "store", accessKeyId="id", secretAccessKey="key")
    found = secrets(S3, KAFKA, secretsDir=str(tmp_path))

    assert found.read("store") == {"accessKeyId": "id", "secretAccessKey": "key"}
    assert found.read(WHOLE_FOLDER) == {}, "and does not miss its own where it needs none"

    write(tmp_path / "broker", username="me")
    (tmp_path / "password").write_text("secret")
    assert found.read(WHOLE_FOLDER) == {"username": "me", "password": "secret"}


def test_a_folder_without_anything_is_an_error_where_all_of_it_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(LookupError, match="is empty"):
        secrets(FILES, KAFKA, secretsDir=str(tmp_path)).read(WHOLE_FOLDER)


def test_what_makes_tokens_reaches_the_client_of_its_part() -> None:
    provider = "module:function"
    tokens = {**KAFKA, "tokenProvider": provider}
    password = {**KAFKA, "endingOffsets": "latest", "kafka.sasl.password": "p"}

    assert secrets(FILES, tokens).token_provider == provider
    with pytest.raises(InvalidSpecError, match="two parts have secrets among their options"):
        secrets(password, tokens, stateDir="/state")
