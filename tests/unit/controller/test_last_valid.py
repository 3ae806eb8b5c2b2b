"""What an operator keeps of the last valid spec, for the case that it restarts while the newest one is invalid."""

import json
from typing import Any

import pytest

from balanced_source_operator.controller.last_valid import LIMIT, kept_fixed, kept_spec, kept_text
from balanced_source_operator.controller.translate import to_source
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
    application = {**spec_json()["application"], "arguments": [VALUE], "sparkConf": {"spark.x": VALUE}}

    text = kept_text(make_spec(application=application))

    assert text
    assert VALUE not in text
    assert "application" not in json.loads(text)


@pytest.mark.parametrize(
    "properties",
    [{"sasl.password": VALUE}, {"sasl.oauthbearer.token.endpoint.url": f"https://me:{VALUE}@login"}],
)
def test_a_spec_that_may_hold_a_secret_is_not_kept(properties: dict[str, str]) -> None:
    assert kept_text(make_spec(source=with_cluster(properties=properties))) == ""


def test_the_name_of_a_secret_is_no_secret() -> None:
    spec = make_spec(source=with_cluster(propertiesFrom=[{"secretRef": {"name": "kafka-password"}}]))

    assert kept_spec(kept_text(spec)) is not None


def test_a_spec_that_is_too_large_is_not_kept() -> None:
    fits = {"properties": {f"p{n}": "x" * 4096 for n in range(15)}}
    too_large = {"properties": {f"p{n}": "x" * 4096 for n in range(16)}}

    assert 0 < len(kept_text(make_spec(source=with_cluster(**fits)))) <= LIMIT
    assert kept_text(make_spec(source=with_cluster(**too_large))) == ""


def test_what_must_not_change_is_kept_beside_the_spec() -> None:
    spec, fixed = make_spec(), {"stoppingOffsets": "", "cluster a: stoppingOffsets": "Latest"}

    text = kept_text(spec, fixed)

    assert kept_fixed(text) == fixed
    assert kept_spec(text) == kept_spec(kept_text(spec))
    assert kept_fixed(kept_text(spec)) == {}, "of an older operator: unknown"


@pytest.mark.parametrize(
    "text",
    [None, "", 7, "{", "[]", "null", "{}", '{"source": 1}', '{"parallelism": 0}', "[" * 100_000, '{"fixed": 7}'],
)
def test_what_is_no_valid_spec_is_ignored(text: Any) -> None:
    assert kept_spec(text) is None
    assert kept_fixed(text) == {}
