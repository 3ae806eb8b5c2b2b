"""What an operator keeps of the last valid spec, for a restart while the newest is invalid."""

import json
from typing import Any

import pytest
import yaml

from balanced_source.errors import InvalidSpecError
from balanced_source_operator.contract.half import TextReference
from balanced_source_operator.controller.last_valid import LIMIT, kept_fixed, kept_spec, kept_text
from balanced_source_operator.controller.translate import (
    fixed_values,
    to_recalled_source,
    to_source,
)
from support.builders import make_spec, spec_json

VALUE = "hunter2"


def with_cluster(**changes: Any) -> dict[str, Any]:
    clusters = [{"name": "main", "bootstrapServers": "b:1", **changes}]
    return {"kafka": {**spec_json()["source"]["kafka"], "clusters": clusters}}


def test_the_same_splits_are_read_by_the_same_number_of_readers() -> None:
    spec = make_spec(parallelism=3, rebalanceNonce=7, assignment={"strategy": "Hash"})

    kept = kept_spec(kept_text(spec))

    assert kept is not None
    assert to_source(kept) == to_source(spec)
    assert (kept.parallelism, kept.rebalance_nonce) == (3, 7)


def test_nothing_of_the_application_is_kept() -> None:
    application = {
        **spec_json()["application"],
        "arguments": [VALUE],
        "sparkConf": {"spark.x": VALUE},
    }

    text = kept_text(make_spec(application=application))

    assert text
    assert VALUE not in text
    assert "application" not in json.loads(text)


@pytest.mark.parametrize(
    "properties",
    [
        {"sasl.password": VALUE},
        {"sasl.oauthbearer.token.endpoint.url": f"https://me:{VALUE}@login"},
    ],
)
def test_a_spec_that_may_hold_a_secret_is_not_kept(properties: dict[str, str]) -> None:
    assert kept_text(make_spec(source=with_cluster(properties=properties))) == ""


def test_the_name_of_a_secret_is_not_a_secret() -> None:
    spec = make_spec(
        source=with_cluster(propertiesFrom=[{"secretRef": {"name": "kafka-password"}}])
    )

    assert kept_spec(kept_text(spec)) is not None


def test_a_field_that_holds_the_name_of_a_secret_is_kept() -> None:
    files = {"paths": ["s3://bucket/orders/"], "format": "Json", "s3": {"secret": "s3-keys"}}
    spec = make_spec(source={"files": files})

    assert kept_spec(kept_text(spec, secrets=["s3-keys"])) is not None
    assert kept_text(spec, secrets=["other"]) == ""


def test_a_spec_that_is_too_large_is_not_kept() -> None:
    fits = {"properties": {f"p{n}": "x" * 4096 for n in range(15)}}
    too_large = {"properties": {f"p{n}": "x" * 4096 for n in range(16)}}

    assert 0 < len(kept_text(make_spec(source=with_cluster(**fits)))) <= LIMIT
    assert kept_text(make_spec(source=with_cluster(**too_large))) == ""


def test_immutable_fields_are_kept_beside_the_spec() -> None:
    spec, fixed = make_spec(), {"stoppingOffsets": "", "cluster a: stoppingOffsets": "Latest"}

    text = kept_text(spec, fixed)

    assert kept_fixed(text) == fixed
    assert kept_spec(text) == kept_spec(kept_text(spec))
    assert kept_fixed(kept_text(spec)) == {}, "of an older operator: unknown"


def streams(*clusters: dict[str, Any]) -> dict[TextReference, str]:
    text = yaml.safe_dump(
        {"clusters": clusters, "streams": {"orders": {c["name"]: ["orders"] for c in clusters}}}
    )
    return {TextReference("streams", "clusters.yaml"): text}


EAST: dict[str, Any] = {"name": "east", "bootstrapServers": "east:1"}
ENDING = {**EAST, "stoppingOffsets": {"type": "Latest"}}
WEST = {"name": "west", "bootstrapServers": "west:1"}
FROM_STREAMS = {
    "kafka": {
        "clustersFrom": {"configMapRef": {"name": "streams", "key": "clusters.yaml"}},
        "subscription": {"streams": ["orders"]},
    }
}


@pytest.mark.parametrize(("before", "after"), [(EAST, ENDING), (ENDING, EAST)])
def test_a_recalled_source_has_its_previous_ends(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    spec = make_spec(source=FROM_STREAMS)
    source = to_source(spec, streams(before))

    assert to_recalled_source(spec, streams(after), fixed_values(source)) == source
    assert to_recalled_source(spec, streams(after), {}) == to_source(spec, streams(after)), (
        "of an older operator"
    )


@pytest.mark.parametrize(
    ("before", "after"), [((EAST, WEST), (ENDING,)), ((EAST,), (ENDING, WEST))]
)
def test_nothing_is_recalled_when_clusters_change_together_with_ends(
    before: Any, after: Any
) -> None:
    """Only a part of what is refused would take effect."""
    spec = make_spec(source=FROM_STREAMS)

    with pytest.raises(
        InvalidSpecError, match="cluster west: stoppingOffsets: was added or removed"
    ):
        to_recalled_source(spec, streams(*after), fixed_values(to_source(spec, streams(*before))))


def test_an_end_in_the_status_that_describes_nothing_is_an_error_in_words() -> None:
    fixed = {"stoppingOffsets": "", "cluster east: stoppingOffsets": "{"}

    with pytest.raises(
        InvalidSpecError, match=r"cluster east: stoppingOffsets: '\{' describes no offsets"
    ):
        to_recalled_source(make_spec(source=FROM_STREAMS), streams(EAST), fixed)


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        7,
        "{",
        "[]",
        "null",
        "{}",
        '{"source": 1}',
        '{"parallelism": 0}',
        "[" * 100_000,
        '{"fixed": 7}',
    ],
)
def test_an_invalid_stored_spec_is_ignored(text: Any) -> None:
    assert kept_spec(text) is None
    assert kept_fixed(text) == {}
