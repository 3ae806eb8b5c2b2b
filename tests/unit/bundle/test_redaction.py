"""A bundle leaves the company: no value of a name that holds secrets goes with it."""

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
    assert redacted_text(f'password="{password}" user=u') == f"password={REDACTED} user=u"
