"""A bundle leaves the company: no value of a name that holds secrets goes with it."""

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from balanced_source.redaction import REDACTED, redacted, redacted_text

SECRET = "hunter2hunter2"  # noqa: S105 - what must not be found


@pytest.mark.parametrize(
    "manifest",
    [
        {"spec": {"sink": {"options": {"dbPassword": SECRET}}}},
        {"spec": {"sparkConf": {"spark.hadoop.fs.s3a.secret.key": SECRET}}},
        {"spec": {"env": [{"name": "API_TOKEN", "value": SECRET}]}},
        {"spec": {"args": ["--url", f"jdbc:postgresql://me:{SECRET}@db/orders"]}},
        {"spec": {"args": [f"--password={SECRET}"]}},
        {
            "spec": {
                "env": [
                    {"name": "OPTS", "value": f"-Djavax.net.ssl.trustStorePassword={SECRET} -Xmx1g"}
                ]
            }
        },
        {"spec": {"secrets": {"token": [SECRET, {"value": SECRET, "name": "password"}]}}},
        {"data": {"client.properties": f'sasl.jaas.config=Login required password="{SECRET}";'}},
        {"data": {"json": f'{{"sasl.password": "{SECRET}", "topic": "orders"}}'}},
        {"data": {"key": f"-----BEGIN PRIVATE KEY-----\n{SECRET}\n-----END PRIVATE KEY-----\n"}},
        {"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": SECRET}}},
        {"metadata": {"managedFields": [SECRET]}},
        {
            "spec": {
                "env": [
                    {
                        "name": "AZURE_STORAGE_CONNECTION_STRING",
                        "value": f"AccountName=lake;AccountKey={SECRET};EndpointSuffix=x",
                    }
                ]
            }
        },
        {"spec": {"sparkConf": {"spark.hadoop.fs.azure.account.key.a.dfs.core.net": SECRET}}},
        {"spec": {"arguments": ["--topic", "orders", "--db-password", SECRET]}},
        {"spec": {"env": [{"name": "DB_PASS", "value": SECRET}]}},
        {"spec": {"env": [{"name": "MYSQL_PWD", "value": SECRET}]}},
        {"spec": {"args": [f"redis://:{SECRET}@cache:6379/0"]}},
        {"spec": {"args": [f"amqp://me:a@{SECRET}@queue/x"]}},
        {
            "metadata": {
                "annotations": {
                    "kapp.k14s.io/original": json.dumps(
                        {"spec": {"env": [{"name": "API_TOKEN", "value": SECRET}]}}
                    )
                }
            }
        },
        {"data": {"values.yaml": f"env:\n- name: API_TOKEN\n  value: {SECRET}\n"}},
        {"data": {"values.yaml": f'env:\n- name: "DB_PASSWORD"\n  value: "{SECRET}"\n'}},
    ],
)
def test_a_manifest_keeps_its_secrets(manifest: dict[str, Any]) -> None:
    assert SECRET not in yaml.safe_dump(redacted(manifest))


def test_a_manifest_keeps_the_rest() -> None:
    manifest = {
        "apiVersion": "v1",
        "metadata": {"name": "orders", "labels": {"a": "b"}, "managedFields": []},
        "spec": {
            "parallelism": 3,
            "secretRef": {"name": "kafka"},
            "env": [{"name": "TOPIC", "value": "orders"}],
            "properties": {"security.protocol": "SASL_SSL", "sasl.username": "reader"},
        },
    }

    clean = redacted(manifest)

    assert clean["spec"] == manifest["spec"]
    assert clean["metadata"] == {"name": "orders", "labels": {"a": "b"}}


@pytest.mark.parametrize(
    "line",
    [
        f"connecting with sasl.password={SECRET}, retries=3",
        f"'ssl.key.password': '{SECRET}'",
        f'{{"client_secret": "{SECRET}"}}',
        f"Authorization: Bearer {SECRET}",
        f"https://user:{SECRET}@registry/v2",
        f"GET /token?access_token={SECRET}&x=1",
        f'ScramLoginModule required username="u" password="{SECRET}";',
        f"AWS_SECRET_ACCESS_KEY={SECRET}",
        f"fs.azure.account.key.lake.dfs.core.windows.net={SECRET}",
        f"fs.azure.sas.orders.lake.blob.core.windows.net: {SECRET}",
        f"Endpoint=sb://hub.net/;SharedAccessKeyName=read;SharedAccessKey={SECRET}",
        f"GET https://lake.blob.core.windows.net/orders?sv=2024-11-04&sig={SECRET}%3D&se=2026",
        f"SharedAccessSignature={SECRET}",
        f"https://orders.s3.amazonaws.com/a?X-Amz-Signature={SECRET}",
        f"redis://:{SECRET}@cache:6379/0",
        f"jdbc:sqlserver://db;user=u;pwd={SECRET};x=y",
        f"options {{'url': 'jdbc:x', 'pass': '{SECRET}'}}",
        f"java -Xmx1g -Dpass={SECRET} -Dx=y",
        f"accountKey={SECRET} and dbPass={SECRET}, es.net.http.auth.pass: {SECRET}",
        f"a=b=password={SECRET}",
        f"config=x&url=y?client.secret={SECRET}",
        json.dumps({"event": f'login with password="{SECRET}" failed'}),
        json.dumps({"error": json.dumps({"sasl.password": SECRET})}),
        json.dumps({"event": f"a \\ and a quote: token='{SECRET}'"}),
        rf"cut off: {{\"sasl.password\": \"{SECRET}\"",
        f'cut off: password="{SECRET}',
        f'{{"x": "password={SECRET}", "x": "fine"}}',
    ],
)
def test_a_line_of_a_log_keeps_its_secret(line: str) -> None:
    clean = redacted_text(line)

    assert SECRET not in clean
    assert REDACTED in clean


@pytest.mark.parametrize(
    "line",
    [
        "batch 7: 3 readers, lag 12, epoch 4 → 5",
        "the Secret kafka does not exist: create it",
        "reader 0 has the token bucket of 3 splits",
        '{"event":"batch",  "sources": [{"epoch": 4}]}',
        "PWD=/opt/spark, tests pass: 3",
        "a=b, bypass=1, compass: north, tokenizer=words, partitionKey=id, " + "x" * 100_000,
        "[1] 7 of 9",
    ],
)
def test_other_lines_stay(line: str) -> None:
    assert redacted_text(line) == line


@given(
    st.text(
        alphabet=st.characters(blacklist_characters="\"'`,;}]\r\n\t\x0b\x0c", codec="ascii"),
        min_size=8,
    )
)
def test_a_quoted_password_is_never_kept(password: str) -> None:
    clean = redacted_text(f'password="{password}" user=u')

    # A backslash before the last quote may escape it.
    ends = password.endswith("\\")
    assert clean.startswith(f"password={REDACTED}") if ends else clean.endswith(" user=u")
    assert password not in clean.removeprefix("password=").removesuffix(" user=u")


@given(st.text(min_size=8, alphabet=st.characters(codec="ascii", categories=("L", "N", "P"))))
def test_a_password_in_json_is_never_kept(password: str) -> None:
    line = json.dumps({"event": json.dumps({"password": password}), "user": "u"})

    assert json.loads(redacted_text(line)) == {
        "event": json.dumps({"password": REDACTED}),
        "user": "u",
    }
