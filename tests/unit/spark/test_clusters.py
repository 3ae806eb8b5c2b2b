"""Clusters that leave while a micro-batch with their records is not finished."""

from typing import Any

import pytest

from balanced_source.errors import RefusedDiscoveryError
from balanced_source_spark.kafka.clusters import cluster_of, with_former


def settings(**bootstrap: str) -> dict[str, Any]:
    clusters = {
        name: {"bootstrapServers": servers, "properties": {}, "secrets": []} for name, servers in bootstrap.items()
    }
    return {"kafka": {"clusters": clusters, "onDataLoss": "Fail"}}


def test_what_former_settings_said_is_known_until_the_driver_ends() -> None:
    """Newer words on the same cluster win, and nothing else of the former settings is kept."""
    former = {**settings(a="a:1", b="b:1"), "other": 1}
    newest = with_former(settings(a="a:2", c="c:1"), former)

    assert newest == settings(a="a:2", b="b:1", c="c:1")
    assert cluster_of(newest, "b").bootstrap_servers == "b:1"
    assert with_former(settings(a="a:1", b="b:2"), former) == settings(a="a:1", b="b:2")


def test_settings_of_another_kind_are_left_alone() -> None:
    assert with_former({}, {}) == {}
    assert with_former({"files": {}}, settings(a="a:1")) == {"files": {}}


def test_a_cluster_that_nobody_knows_is_told_with_what_to_do() -> None:
    """After a restart nobody remembers; a KeyError would end the query again and again without a word."""
    with pytest.raises(RefusedDiscoveryError, match="put it back into clusters with active: false") as caught:
        cluster_of(settings(a="a:1"), "b")

    assert (caught.value.scope, caught.value.reason) == ("b", "ClusterRemoved")
