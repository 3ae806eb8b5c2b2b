"""Options of the sink and settings of Spark that are in Secrets."""

from pathlib import Path

import pytest

from balanced_source.documents.environment import DriverEnvironment
from balanced_source.errors import InvalidSpecError
from balanced_source_spark.mounted_options import secret_settings

FIELD = "spec.application.sparkConfFrom"


def driver(folder: Path, *names: str) -> DriverEnvironment:
    return DriverEnvironment(
        name="orders", namespace="shop", uid="u", secrets_dir=str(folder), conf_secrets=names
    )


@pytest.fixture(name="folder")
def fixture_folder(tmp_path: Path) -> Path:
    secrets = {
        "storage": {"spark.key": "hunter1", "spark.secret": "hunter2"},
        "later": {"spark.key": "hunter3"},
        "wrong": {"z.key": "hunter4", "spark.key": "hunter5", "a.key": "hunter6"},
    }
    for name, properties in secrets.items():
        (tmp_path / name).mkdir()
        for key, value in properties.items():
            (tmp_path / name / key).write_text(f"{value}\n")
    return tmp_path


def test_a_later_secret_wins(folder: Path) -> None:
    found = secret_settings(driver(folder, "storage", "later"))

    assert found == {"spark.key": "hunter3", "spark.secret": "hunter2"}


def test_no_secret_is_no_setting(folder: Path) -> None:
    assert secret_settings(driver(folder)) == {}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("wrong", "a.key is not a Spark setting: name it spark.…"),
        ("gone", "secret gone is not mounted"),
    ],
)
def test_a_secret_that_cannot_be_used_is_named_without_its_values(
    folder: Path, name: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same key in each run: a folder lists its files in any order."""
    listed = Path.iterdir
    monkeypatch.setattr(Path, "iterdir", lambda path: sorted(listed(path), reverse=True))

    with pytest.raises(InvalidSpecError) as caught:
        secret_settings(driver(folder, "storage", name))

    assert caught.value.field == FIELD
    assert str(caught.value).startswith(f"{FIELD}: {said}")
    assert "hunter" not in str(caught.value)
