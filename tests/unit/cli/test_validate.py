"""``balanced-source validate``: file, line, column, a sentence, and an exit code for CI."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from typer.testing import CliRunner, Result

from balanced_source_operator.cli import app
from fuzz import commands
from fuzz.judge import Judge

VALID = """\
apiVersion: balancedsource.io/v1alpha1
kind: BalancedSource
metadata:
  name: orders
spec:
  parallelism: 2
  source:
    kafka:
      clusters:
      - name: main
        bootstrapServers: broker:9092
      subscription:
        topics: [orders]
  application:
    image: i
    sparkVersion: 4.2.0
    pipeline:
      sink:
        options: {path: /orders}
      checkpointLocation: /data
"""


def validate(*arguments: str, given: str | bytes | None = None) -> Result:
    return CliRunner().invoke(app, ["validate", "--server", "never", *arguments], input=given)


def check(text: str | bytes) -> Result:
    return validate("-f", "-", given=text)


def test_a_valid_manifest() -> None:
    result = check(VALID)

    assert (result.exit_code, result.stdout) == (0, "<stdin>: BalancedSource orders: valid\n")


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        (
            "parallelism: 2",
            "parallelism: 0",
            "6:3: error: spec.parallelism: must be 1 or more, not 0",
        ),
        (
            "parallelism: 2",
            "paralelism: 2",
            "6:3: error: spec.paralelism: unknown field; did you mean parallelism?",
        ),
        (
            "image: i",
            "imagePullPolicy: Never",
            "14:3: error: spec.application.image: required field is missing",
        ),
        (
            "topics: [orders]",
            "topics: [orders, 'or ders']",
            (
                "13:26: error: spec.source.kafka.subscription.topics[1]: must be the name of a"
                " topic: letters, digits"
            ),
        ),
        (
            "topics: [orders]",
            "topicPattern: o.*\n        topics: [orders]",
            "12:7: error: spec.source.kafka.subscription: set exactly one of topics",
        ),
        (
            "topics: [orders]",
            "topicPattern: 'a('",
            "13:9: error: spec.source.kafka.subscription.topicPattern: ",
        ),
        (
            "options: {path: /orders}",
            "options: {compression: zstd}",
            "19:9: error: spec.application.pipeline.sink.options: the option path is missing",
        ),
        (
            "metadata:\n  name: orders",
            "metadata: [orders]",
            "3:1: error: metadata.name: required field is missing",
        ),
        ("name: orders", "name: Orders", "1:1: error: the name begins pod and ConfigMap names"),
        (
            "kind: BalancedSource",
            "kind: BalancedSources",
            "2:1: error: kind: must be BalancedSource, not 'BalancedSources'",
        ),
        (
            "apiVersion: balancedsource.io/v1alpha1",
            "apiVersion: balancedsource.io/v1",
            (
                "1:1: error: apiVersion: must be balancedsource.io/v1alpha1, not"
                " 'balancedsource.io/v1'"
            ),
        ),
        (
            "kind: BalancedSource\n",
            "",
            "1:1: error: kind: required field is missing: set it to BalancedSource",
        ),
        (
            "topics: [orders]",
            "topicPattern: 'orders-(west|east|north|south)-[a-z'",
            (
                "13:9: error: spec.source.kafka.subscription.topicPattern: not a valid regular"
                " expression (RE2 syntax): unclosed character class\n"
            ),
        ),
        (
            "  parallelism: 2",
            "  parallelism: 2\n  parallelism: 3",
            "7:3: error: 'parallelism': this key occurs twice",
        ),
    ],
)
def test_a_mistake_is_shown_where_it_is(before: str, after: str, line: str) -> None:
    assert "invalid\n" in shown_mistake(before, after, line)


def shown_mistake(before: str, after: str, line: str) -> str:
    """Returns all that is printed about a mistake which is shown with its place."""
    result = check(VALID.replace(before, after))
    assert result.exit_code == 1
    assert f"<stdin>:{line}" in result.stdout
    return result.stdout


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        (
            "parallelism: 2",
            "parallelism: [2",
            (
                "7:9: error: it is not valid YAML: while parsing a flow sequence: did not find"
                " expected ',' or ']'"
            ),
        ),
        (
            "  parallelism: 2",
            "\tparallelism: 2",
            (
                "6:1: error: it is not valid YAML: while scanning for the next token: found"
                " character that cannot start any token"
            ),
        ),
        (
            "image: i",
            "image: *i",
            "15:12: error: it is not valid YAML: found undefined alias",
        ),
    ],
)
def test_a_mistake_of_the_syntax_is_shown_where_it_is(before: str, after: str, line: str) -> None:
    shown_mistake(before, after, line)


def test_all_mistakes_of_all_documents_are_shown_at_once() -> None:
    other = VALID.replace("name: orders", "name: payments").replace("4.2.0", "3.5.1")
    text = (
        f"{VALID.replace('parallelism: 2', 'parallelism: many')}---\nkind: ConfigMap\n---\n{other}"
    )

    found = json.loads(validate("-f", "-", "-o", "json", given=text).stdout)

    assert not found["valid"]
    assert [checked["name"] for checked in found["checked"]] == ["orders", "payments"]
    assert [(p["document"], p["line"], p["field"]) for p in found["problems"]] == [
        (1, 6, "spec.parallelism"),
        (3, 39, "spec.application.sparkVersion"),
    ]


def test_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(VALID)
    (tmp_path / "b.yml").write_text(VALID.replace("broker:9092", "bro ker"))
    (tmp_path / "notes.txt").write_text("{")

    result = validate("-f", str(tmp_path))

    assert result.exit_code == 1
    assert (
        f"{tmp_path}/b.yml:11:9: error: spec.source.kafka.clusters[0].bootstrapServers: must be"
        in result.stdout
    )
    assert f"{tmp_path}/a.yaml: BalancedSource orders: valid" in result.stdout


def test_unquoted_numbers_as_keys_are_text_as_in_kubernetes() -> None:
    start = (
        "subscription:\n        topics: [orders]\n"
        "      startingOffsets: {type: Specific, offsets: {orders: {0: 5}}}"
    )

    assert check(VALID.replace("subscription:\n        topics: [orders]", start)).exit_code == 0


STREAMS = VALID.replace(
    "clusters:\n      - name: main\n        bootstrapServers: broker:9092",
    "clustersFrom: {configMapRef: {name: streams}}",
).replace("topics: [orders]", "streams: [a]")
CONFIG_MAP = """\
---
kind: ConfigMap
metadata: {name: streams}
data:
  clusters.yaml: |
    clusters: [{name: main, bootstrapServers: "b:1"}]
    streams: {STREAM: {main: [t]}}
"""


def test_a_config_map_in_the_same_text_is_checked_too() -> None:
    assert check(STREAMS + CONFIG_MAP.replace("STREAM", "a")).exit_code == 0
    wrong = check(STREAMS + CONFIG_MAP.replace("STREAM", "b"))

    assert wrong.exit_code == 1
    assert (
        "11:9: error: spec.source.kafka.subscription.streams: the metadata has no stream a"
        in wrong.stdout
    )


def test_checks_that_were_skipped_are_named() -> None:
    result = check(STREAMS)

    assert result.exit_code == 0
    assert "note: <stdin>: ConfigMap streams is not here" in result.stderr


@pytest.mark.parametrize("text", ["", "kind: ConfigMap", "null"])
def test_a_text_without_a_source_cannot_be_valid(text: str) -> None:
    result = check(text)

    assert result.exit_code == 2
    assert result.stderr == "Error: -: there is no BalancedSource (kind: BalancedSource) in it\n"


def test_a_file_that_cannot_be_read() -> None:
    result = validate("-f", "/nonexistent/orders.yaml")

    assert result.exit_code == 2
    assert result.stderr == (
        "Error: /nonexistent/orders.yaml: cannot be read: no such file or directory\n"
    )


def test_an_api_server_that_was_asked_for_must_answer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))

    always = CliRunner().invoke(app, ["validate", "--server", "always", "-f", "-"], input=VALID)
    auto = CliRunner().invoke(app, ["validate", "-f", "-"], input=VALID)

    assert (always.exit_code, auto.exit_code) == (2, 0)
    assert "Set KUBECONFIG, or log in to a cluster" in always.stderr
    assert auto.stderr == "note: no kubeconfig found: not checked by an API server\n"


@settings(
    max_examples=60,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(commands.cases)
def test_no_input_ends_in_a_traceback(case: Any) -> None:
    commands.check(case, Judge())
