"""What readers are told besides their splits.

Also of clusters that leave while their records are being read.
"""

from typing import Any

import pytest

from balanced_source.connectors.kafka import (
    KafkaCluster,
    KafkaReaderSettings,
    OnDataLoss,
    ReadLimits,
    SettingsCache,
    with_former,
)
from balanced_source.errors import RefusedDiscoveryError
from support.world import kafka_source

FULL = KafkaReaderSettings(
    clusters={
        "a": KafkaCluster(
            name="a",
            bootstrap_servers="a:1",
            properties={"isolation.level": "read_committed"},
            secrets=("s", "t"),
        ),
        "b": KafkaCluster(name="b", bootstrap_servers="b:1"),
    },
    limits=ReadLimits(
        max_records=9, max_records_per_split=3, max_bytes=1000, min_records=2, max_delay=60.0
    ),
    on_data_loss=OnDataLoss.CONTINUE,
    commit_group="g",
)
WRITTEN = {
    "clusters": {
        "a": {
            "bootstrapServers": "a:1",
            "properties": {"isolation.level": "read_committed"},
            "secrets": ["s", "t"],
        },
        "b": {"bootstrapServers": "b:1", "properties": {}, "secrets": []},
    },
    "limits": {
        "maxRecords": 9,
        "maxRecordsPerSplit": 3,
        "maxBytes": 1000,
        "minRecords": 2,
        "maxDelay": 60.0,
    },
    "onDataLoss": "Continue",
    "commitGroup": "g",
}


def settings(**bootstrap: str) -> dict[str, Any]:
    clusters = {
        name: {"bootstrapServers": servers, "properties": {}, "secrets": []}
        for name, servers in bootstrap.items()
    }
    return {"kafka": {"clusters": clusters, "limits": {}, "onDataLoss": "Fail"}}


def test_the_json_matches_assignments_of_released_versions() -> None:
    """Running drivers of the former release read what a newer operator writes, and vice versa."""
    assert FULL.to_json() == WRITTEN
    assert KafkaReaderSettings.from_json(WRITTEN) == FULL


def test_fields_missing_in_an_older_version_have_defaults() -> None:
    assert KafkaReaderSettings.from_json({"clusters": {}}) == KafkaReaderSettings()
    assert KafkaReaderSettings.of({}) == KafkaReaderSettings()
    assert KafkaReaderSettings().on_data_loss is OnDataLoss.FAIL, (
        "nothing is skipped unless somebody asked for it"
    )


def test_readers_know_active_and_inactive_clusters() -> None:
    source = kafka_source(
        "c", inactive=(KafkaCluster(name="old", bootstrap_servers="old:1"),), limits=FULL.limits
    )

    told = KafkaReaderSettings.of(source.reader_settings())

    assert told.clusters.keys() == {"c", "old"}
    assert told.limits == FULL.limits
    assert source.reader_settings() == {"kafka": told.to_json()}


def test_settings_are_read_once_for_the_same_assignment() -> None:
    cache, first = SettingsCache(), {"kafka": WRITTEN}

    assert cache.of(first) is cache.of(first)
    assert cache.of(settings(a="a:1")).clusters.keys() == {"a"}
    assert cache.of(first) == FULL


def test_clusters_of_previous_settings_stay_known_until_the_driver_ends() -> None:
    """Newer words on the same cluster win, and nothing else of the former settings is kept."""
    former = {**settings(a="a:1", b="b:1"), "other": 1}
    newest = with_former(settings(a="a:2", c="c:1"), former)

    assert newest == settings(a="a:2", b="b:1", c="c:1")
    assert KafkaReaderSettings.of(newest).cluster("b").bootstrap_servers == "b:1"
    assert with_former(settings(a="a:1", b="b:2"), former) == settings(a="a:1", b="b:2")


def test_settings_of_another_kind_are_left_alone() -> None:
    assert with_former({}, {}) == {}
    assert with_former({"files": {}}, settings(a="a:1")) == {"files": {}}


def test_an_unknown_cluster_is_reported_with_what_to_do() -> None:
    """After a restart no one remembers.

    A KeyError would end the query again and again without a word.
    """
    with pytest.raises(
        RefusedDiscoveryError, match="put it back into clusters with active: false"
    ) as caught:
        KafkaReaderSettings.of(settings(a="a:1")).cluster("b")

    assert (caught.value.scope, caught.value.reason) == ("b", "ClusterRemoved")


def test_settings_of_another_kind_have_no_clusters_to_add() -> None:
    """The source was changed since the micro-batch was planned."""
    assert with_former({"files": {}}, settings(a="a:1")) == {"files": {}}


def test_only_clusters_with_splits_of_the_last_micro_batch_are_kept() -> None:
    former = settings(a="a:1", b="b:1", c="c:1")

    assert with_former(settings(d="d:1"), former, held={"b"}) == settings(b="b:1", d="d:1")
    assert with_former(settings(a="a:1"), former, held=()) == settings(a="a:1")
