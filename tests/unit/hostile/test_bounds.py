"""Values that are of the right type, and still break something, are rejected in words."""

import itertools
from typing import Any

import pytest

from balanced_source.errors import InvalidSpecError
from balanced_source_operator.controller.translate import to_source
from balanced_source_operator.resources.spark_application import spark_application
from balanced_source_operator.spec import parse_spec
from support.builders import identity, make_spec, spec_json

CLUSTERS = [{"name": "main", "bootstrapServers": "broker:9092"}]


def kafka(**changes: Any) -> dict[str, Any]:
    return spec_json(
        source={"kafka": {"clusters": CLUSTERS, "subscription": {"topics": ["t"]}, **changes}}
    )


def application(**changes: Any) -> dict[str, Any]:
    return spec_json(application={**spec_json()["application"], **changes})


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        (
            kafka(discovery={"interval": "1ms"}),
            "discovery.interval: 1ms is too short: use at least 1s, or 0",
        ),
        (kafka(discovery={"interval": "999999999h"}), "at most ten years"),
        (kafka(removedClusterRetention="9" * 31 + "h"), "a duration such as"),
        (kafka(subscription={"topicPattern": "(" * 200 + "a" + ")" * 200}), "more than 32 groups"),
        (kafka(startingOffsets={"type": "Timestamp", "timestamp": 2**63}), "less than or equal to"),
        (
            kafka(startingOffsets={"type": "Specific", "offsets": {"t": {"0": 2**63}}}),
            "less than or equal to",
        ),
        (
            kafka(startingOffsets={"type": "Specific", "offsets": {"t": {"2147483648": 0}}}),
            "not a valid partition",
        ),
        (application(sparkVersion="3.5.1"), "3.5.1 is not supported: must be 4.2.0 or newer"),
        (application(sparkVersion="4.1.9"), "4.1.9 is not supported"),
        (application(driver={"memory": "0"}), "an amount of memory such as 512m or 4g, not '0'"),
        (application(driver={"memory": "0g"}), "an amount of memory"),
        (application(executor={"memory": "100m"}), "must be at least 512m"),
        (application(executor={"memory": "511"}), "must be at least 512m"),
    ],
)
def test_it_is_rejected_in_words(spec: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidSpecError) as caught:
        to_source(parse_spec(spec))
    assert says in str(caught.value)


@pytest.mark.parametrize("version", ["4.2.0", "4.10.1", "5.0.0", "12.0.1", "4.3.0-preview1"])
@pytest.mark.parametrize("memory", ["512m", "524288k", "1G", "1t", "700"])
def test_the_largest_allowed_value_is_accepted(version: str, memory: str) -> None:
    parse_spec(application(sparkVersion=version, driver={"memory": memory}))


def volumes(*secrets: str) -> list[str]:
    manifest = spark_application(
        identity(),
        make_spec().application,
        name="orders-1",
        parallelism=1,
        secrets=secrets,
        conf={},
    )
    return [volume["name"] for volume in manifest["spec"]["driver"]["template"]["spec"]["volumes"]]


def test_no_two_secrets_share_a_volume() -> None:
    """Names of Secrets have dots and 253 characters, those of volumes have neither."""
    secrets = [
        "a.b",
        "a-b",
        "a.b.c",
        "a-b.c",
        *("x" * n for n in (50, 51, 52, 53, 100, 253)),
        "x" * 52 + ".y",
    ]

    names = volumes(*secrets)

    assert len(set(names)) == len(secrets)
    for first, second in itertools.combinations(names, 2):
        assert first != second
    assert all(len(name) <= 63 and "." not in name for name in names)
    assert volumes("kafka") == ["bsrc-secret-kafka"], "the names that running pods have"
