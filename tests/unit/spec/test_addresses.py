"""A source cannot make the operator ask for the credentials of its own pod."""

from typing import Any

import pytest
from balanced_source_httplog.operator_half import HttpLogOperatorHalf, HttpLogSpec

from balanced_source.api import RebalancePolicy
from balanced_source.assigners import RoundRobinAssigner
from balanced_source.errors import InvalidSpecError
from balanced_source_operator.contract.addresses import check_endpoint
from balanced_source_operator.contract.half import Common
from balanced_source_operator.controller.translate import NO_TEXTS, to_source
from balanced_source_operator.spec import parse_spec
from support.builders import spec_json

METADATA = "http://169.254.169.254"
TOKENS = "sasl.oauthbearer.token.endpoint.url"


@pytest.mark.parametrize(
    "host",
    [
        "169.254.169.254",
        "169.254.170.2",
        "2852039166",
        "0xA9FEA9FE",
        "0251.0376.0251.0376",
        "169.16689662",
        "[fe80::1]",
        "[fd00:ec2::254]",
        "[::ffff:169.254.169.254]",
        "metadata.google.internal",
        "METADATA.google.internal.",
    ],
)
def test_addresses_that_serve_credentials_are_refused(host: str) -> None:
    with pytest.raises(InvalidSpecError, match="clouds serve the credentials") as refused:
        check_endpoint(f"http://{host}:80/latest", field="f")
    assert refused.value.field == "f"


@pytest.mark.parametrize("url", ["169.254.169.254/latest", "http://[169.254.169.254", "http://["])
def test_what_is_no_whole_url_is_refused_as_well(url: str) -> None:
    with pytest.raises(InvalidSpecError):
        check_endpoint(url, field="f")


@pytest.mark.parametrize(
    "url",
    [None, "http://127.0.0.1:4566", "https://s3.example.com", "http://10.0.0.7", "http://[::1]:9"],
)
def test_others_are_a_matter_of_network_policies(url: str | None) -> None:
    check_endpoint(url, field="f")


@pytest.mark.parametrize(
    ("source", "field"),
    [
        (
            {"kinesis": {"streams": ["s"], "endpoint": METADATA, "secret": "k"}},
            "spec.source.kinesis.endpoint",
        ),
        (
            {"files": {"paths": ["s3://b/p"], "format": "Text", "s3": {"endpoint": METADATA}}},
            "spec.source.files.s3.endpoint",
        ),
        (
            {
                "files": {
                    "paths": ["s3://b/p"],
                    "format": "Text",
                    "discoveryInterval": "1m",
                    "s3": {"notificationQueue": f"{METADATA}/q"},
                }
            },
            "spec.source.files.s3.notificationQueue",
        ),
        (
            {"files": {"paths": ["gs://b/p"], "format": "Text", "gcs": {"endpoint": METADATA}}},
            "spec.source.files.gcs.endpoint",
        ),
        (
            {"files": {"paths": ["az://b/p"], "format": "Text", "azure": {"endpoint": METADATA}}},
            "spec.source.files.azure.endpoint",
        ),
        (
            {"files": {"paths": [f"hdfs{METADATA[4:]}:80/p"], "format": "Text"}},
            "spec.source.files.paths",
        ),
        (
            {
                "kafka": {
                    "clusters": [
                        {"name": "c", "bootstrapServers": "b:1", "properties": {TOKENS: METADATA}}
                    ],
                    "subscription": {"topics": ["t"]},
                }
            },
            f"spec.source.kafka.clusters[0].properties: {TOKENS}",
        ),
    ],
)
def test_built_in_connectors_check_their_endpoints(source: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidSpecError) as refused:
        to_source(parse_spec(spec_json(source=source)))

    assert refused.value.field == field


def test_the_sample_connector_checks_its_address() -> None:
    half, common = (
        HttpLogOperatorHalf(),
        Common(assigner=RoundRobinAssigner(), rebalance_policy=RebalancePolicy()),
    )

    with pytest.raises(InvalidSpecError) as refused:
        half.to_source(HttpLogSpec(url=METADATA), common, NO_TEXTS, field="config")

    assert refused.value.field == "config.url"
