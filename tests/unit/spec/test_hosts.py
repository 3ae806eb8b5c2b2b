"""How many hosts a spec asks for, what they are called, and what cannot be used with them."""

from typing import Any

import pytest

from balanced_source.documents.storage import Names, base_of
from balanced_source.errors import InvalidSpecError
from balanced_source_operator.resources.identity import Identity
from balanced_source_operator.resources.spark_application import application_hash, spark_application
from balanced_source_operator.spec import BalancedSourceSpec, parse_spec
from balanced_source_operator.spec.hosts import host_names, readers_per_host
from support.builders import spec_json

SOURCE = Identity(namespace="shop", name="orders", uid="u-1")


def spec(
    hosts: dict[str, Any] | None, *, parallelism: int = 7, **pipeline: Any
) -> BalancedSourceSpec:
    raw = spec_json(parallelism=parallelism)
    raw["application"]["pipeline"] |= pipeline
    return parse_spec(
        {**raw, "application": {**raw["application"], **({"hosts": hosts} if hosts else {})}}
    )


@pytest.mark.parametrize(
    ("hosts", "names", "readers"),
    [
        (None, ("0",), 7),
        ({"count": 1}, ("0",), 7),
        ({"count": 3}, ("0", "1", "2"), 3),
        ({"readersPerHost": 3}, ("0", "1", "2"), 3),
        ({"readersPerHost": 7}, ("0",), 7),
        ({"readersPerHost": 100}, ("0",), 7),
    ],
)
def test_hosts_are_numbered_from_0(
    hosts: dict[str, Any], names: tuple[str, ...], readers: int
) -> None:
    assert host_names(spec(hosts)) == names
    assert readers_per_host(spec(hosts)) == readers


def test_there_are_at_most_64_hosts() -> None:
    assert len(host_names(spec({"readersPerHost": 1}, parallelism=1000))) == 64


@pytest.mark.parametrize(
    "hosts", [{"count": 1, "readersPerHost": 2}, {"count": 0}, {"count": 65}, {"readersPerHost": 0}]
)
def test_invalid_values_are_rejected(hosts: dict[str, Any]) -> None:
    with pytest.raises(InvalidSpecError, match="hosts"):
        spec(hosts)


def test_an_empty_choice_is_refused() -> None:
    raw = spec_json()
    with pytest.raises(InvalidSpecError, match="set either count or readersPerHost"):
        parse_spec({**raw, "application": {**raw["application"], "hosts": {}}})


def test_alignment_and_available_now_are_refused_with_hosts() -> None:
    with pytest.raises(InvalidSpecError, match=r"hosts cannot be used with pipeline\.alignment"):
        spec({"count": 2}, alignment={"maxDrift": "1m"})
    with pytest.raises(InvalidSpecError, match="hosts cannot be used with trigger availableNow"):
        spec({"count": 2}, trigger={"availableNow": True})


def test_names_of_further_hosts_are_no_names_of_other_sources() -> None:
    assert Names.of("orders", uid="u-1") == Names.of("orders")
    bases = {
        base_of(name, host, uid=uid)
        for name in ("orders", "orders-1")
        for host in "123"
        for uid in ("u-1", "u-2")
    }
    assert len(bases) == 12
    assert all(base.startswith("orders") and len(base) < len("orders-1-") + 10 for base in bases)
    assert Names.of("orders", "1", uid="u-1").state == "orders-enumerator"


def test_an_application_is_its_hosts_by_its_name() -> None:
    other = Identity(namespace="shop", name="orders", uid="u-2")
    name = f"{SOURCE.on_host('12').base}-3"

    assert SOURCE.host_of(name) == "12"
    assert other.host_of(name) == "0"
    assert SOURCE.host_of("orders-3") == SOURCE.host_of("") == "0"


def test_a_change_of_hosts_is_not_a_change_of_the_application() -> None:
    one, two = spec(None).application, spec({"count": 2}).application

    assert application_hash(SOURCE, one, conf={}) == application_hash(
        SOURCE.on_host("1"), two, conf={}
    )


def test_the_driver_of_a_further_host_gets_the_name_of_its_host() -> None:
    made = [
        spark_application(
            SOURCE.on_host(host),
            spec({"count": 2}).application,
            name="x",
            parallelism=1,
            secrets=(),
            conf={},
        )
        for host in "01"
    ]

    env = [m["spec"]["driver"]["template"]["spec"]["containers"][0]["env"] for m in made]
    told = [{v["name"]: v.get("value") for v in variables} for variables in env]
    assert "BALANCED_SOURCE_HOST" not in told[0]
    assert (told[1]["BALANCED_SOURCE_HOST"], told[1]["BALANCED_SOURCE_ENVIRONMENT_VERSION"]) == (
        "1",
        "2",
    )
    assert "balancedsource.io/host" not in made[0]["metadata"]["labels"]
    for labels in (
        made[1]["metadata"]["labels"],
        made[1]["spec"]["executor"]["labels"],
        made[1]["spec"]["driver"]["labels"],
    ):
        assert labels["balancedsource.io/host"] == "1"
