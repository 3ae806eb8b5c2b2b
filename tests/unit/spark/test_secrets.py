"""Secrets of a query without an operator: options, environment variables and files.

Nothing shows a value.
"""

import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from balanced_source.connectors.kafka import KafkaSource
from balanced_source.errors import InvalidSpecError
from balanced_source_adapters.kafka.config import client_config
from balanced_source_adapters.kafka.tokens import TokenCallback, provider_of
from balanced_source_spark.contract.secrets import GIVEN, WHOLE_FOLDER, QuerySecrets, resolved
from balanced_source_spark.options import Options, parse_options, query_of
from balanced_source_spark.stream_reader import task_reader

TOPIC = {"kafka.bootstrap.servers": "b:1", "subscribe": "orders"}
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
SECRET = "hunter2"  # noqa: S105


def config_of(options: Options) -> dict[str, Any]:
    assert isinstance(options.embedded, KafkaSource)
    return client_config(options.embedded.clusters[0], options.secrets, client_id="c")


@pytest.mark.parametrize(
    ("given", "want"),
    [
        ({"kafka.sasl.password": SECRET}, {"sasl.password": SECRET}),
        (
            {"kafka.sasl.jaas.config": f'{SCRAM} username="alice" password="{SECRET}";'},
            {"sasl.username": "alice", "sasl.password": SECRET},
        ),
        (
            {"kafka.ssl.keystore.key": SECRET, "kafka.ssl.truststore.certificates": "ca"},
            {"ssl.key.pem": SECRET},
        ),
        (
            {"kafka.sasl.oauthbearer.client.secret": SECRET},
            {"sasl.oauthbearer.client.secret": SECRET},
        ),
    ],
)
def test_a_secret_in_the_options_reaches_the_client_and_nothing_that_is_shown(
    given: dict[str, str], want: dict[str, str]
) -> None:
    options = parse_options({**TOPIC, **given})

    assert want.items() <= config_of(options).items()
    assert options.embedded is not None
    shown = [
        repr(options),
        repr(query_of(options)),
        repr(options.embedded),
        repr(task_reader(options)),
        *options.notes,
    ]
    assert not [text for text in shown if SECRET in text]
    assert SECRET not in str(options.embedded.reader_settings)


def test_tasks_get_the_secrets_that_the_driver_had() -> None:
    options = parse_options({**TOPIC, "kafka.sasl.password": SECRET})

    # Made here
    make, arguments = pickle.loads(pickle.dumps((task_reader(options), ())))  # noqa: S301

    assert make(*arguments).reader.reader.secrets.read(GIVEN) == {"sasl.password": SECRET}


def test_a_reference_to_the_environment_is_resolved_wherever_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(os.environ, "KAFKA_USER", "alice")
    monkeypatch.setitem(os.environ, "KAFKA_PASSWORD", SECRET)
    line = f'{SCRAM} username="${{env:KAFKA_USER}}" password="${{env:KAFKA_PASSWORD}}";'

    options = parse_options(
        {**TOPIC, "kafka.sasl.jaas.config": line, "kafka.client.rack": "${env:KAFKA_USER}"}
    )

    found = config_of(options)
    assert (found["sasl.username"], found["sasl.password"], found["client.rack"]) == (
        "alice",
        SECRET,
        "alice",
    )
    assert options.notes == ()


def test_a_variable_that_is_not_set_is_named_with_its_option() -> None:
    with pytest.raises(
        InvalidSpecError,
        match=r"^option kafka\.sasl\.password: the environment variable NOWHERE is",
    ):
        resolved("kafka.sasl.password", "${env:NOWHERE}", {})


@pytest.mark.parametrize("name", ["sasl.jaas.config", "ssl.key.pem", "ssl.keystore.key"])
def test_a_secret_that_spark_would_show_gives_a_warning(name: str) -> None:
    value = f'{SCRAM} username="a" password="{SECRET}";' if "jaas" in name else SECRET

    notes = parse_options({**TOPIC, f"kafka.{name}": value}).notes

    assert [
        note.startswith(f"option kafka.{name} is a secret that Spark shows in explain()")
        for note in notes
    ] == [True]


def test_a_broken_jaas_line_is_rejected_without_its_content() -> None:
    with pytest.raises(InvalidSpecError, match=r"^option kafka\.sasl\.jaas\.config: ") as raised:
        parse_options({**TOPIC, "kafka.sasl.jaas.config": SECRET})
    assert SECRET not in str(raised.value)


def test_files_of_the_folder_are_properties_and_options_win(tmp_path: Path) -> None:
    (tmp_path / "kafka").mkdir()
    (tmp_path / "kafka" / "sasl.password").write_text("in a folder\n")
    (tmp_path / "sasl.username").write_text("alice\n")
    (tmp_path / "..data").mkdir()  # of Kubernetes
    options = parse_options({**TOPIC, "secretsDir": str(tmp_path), "kafka.sasl.password": SECRET})

    assert options.secrets.read(WHOLE_FOLDER) == {
        "sasl.password": "in a folder",
        "sasl.username": "alice",
    }
    assert (config_of(options)["sasl.username"], config_of(options)["sasl.password"]) == (
        "alice",
        SECRET,
    )


def test_of_folders_with_the_same_property_the_last_by_name_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In whatever order the file system lists them."""
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "ssl.ca.pem").write_text(name)
    listed = Path.iterdir
    monkeypatch.setattr(
        Path, "iterdir", lambda path: iter(sorted(listed(path), key=str, reverse=True))
    )

    assert QuerySecrets(folder=tmp_path).read(WHOLE_FOLDER) == {"ssl.ca.pem": "c"}


@pytest.mark.parametrize("folder", ["nowhere", "empty"])
def test_a_folder_without_secrets_is_named(tmp_path: Path, folder: str) -> None:
    (tmp_path / "empty").mkdir()

    with pytest.raises(LookupError, match=f"{folder} of the option secretsDir"):
        QuerySecrets(folder=tmp_path / folder).read(WHOLE_FOLDER)


def test_a_token_provider_is_called_by_the_client() -> None:
    options = parse_options(
        {**TOPIC, "tokenProvider": "json:loads", "kafka.security.protocol": "SASL_SSL"}
    )

    found = config_of(options)

    assert (found["oauth_cb"], found["sasl.mechanism"]) == (
        TokenCallback("json:loads"),
        "OAUTHBEARER",
    )
    assert found["oauth_cb"]('["token", 7]') == ["token", 7]
    assert found == config_of(options), "an equal configuration keeps its client"


@pytest.mark.parametrize("reference", ["nowhere:token", "json:nothing", "json", ""])
def test_a_token_provider_that_cannot_be_loaded_is_named(reference: str) -> None:
    with pytest.raises(InvalidSpecError, match=r"option tokenProvider: .*Write module:function"):
        provider_of(reference)
