"""The driver's view of a large assignment.

Its base is read once, and never mixed with another one.
"""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import ConfigMap

from balanced_source.api import SplitId
from balanced_source.documents import increments, storage
from balanced_source.documents.assignment import Assignment
from balanced_source.documents.increments import Base
from balanced_source.documents.parts import Content, allocate, lay_out, part_names, with_parts
from balanced_source.documents.storage import Blob
from balanced_source_spark.channels.errors import ChannelError
from balanced_source_spark.channels.kubernetes import KubernetesChannel

IDS: list[SplitId] = [("main", "orders", p) for p in range(200)]
NAMES = part_names("orders-assignment")


def assignment(incarnation: int) -> Assignment:
    starts = {s: 7919 * i for i, s in enumerate(IDS)}
    owners = {s: i % 4 for i, s in enumerate(IDS)}
    return Assignment(
        epoch=incarnation,
        parallelism=4,
        incarnations={"0": incarnation},
        owners=owners,
        starts=starts,
    )


class Cluster:
    """ConfigMaps, and how often each was read."""

    def __init__(self) -> None:
        self.blobs: dict[str, Blob] = {"orders-readers": Blob()}
        self.reads: Counter[str] = Counter()
        self._base: Base | None = None

    def publish(self, wanted: Assignment) -> None:
        text, self._base = increments.encode(wanted, source="uid", base=self._base)
        assert self._base is not None, "large enough to have a base"
        head, parts = lay_out(Content(text, self._base.text))
        refs = allocate(parts, ())
        self.blobs |= {NAMES[ref.number]: part.blob for ref, part in zip(refs, parts, strict=True)}
        self.blobs["orders-assignment"] = with_parts(head, refs)

    def get(self, kind: Any, name: str, *, namespace: str) -> ConfigMap:
        self.reads[name] += 1
        blob = self.blobs[name]
        metadata = ObjectMeta(name=name, resourceVersion="1")
        return ConfigMap(metadata=metadata, data=dict(blob.data), binaryData=dict(blob.binary))


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    monkeypatch.setattr(storage, "PLAIN_LIMIT", 1_000)
    return Cluster()


def channel(cluster: Cluster) -> KubernetesChannel:
    return KubernetesChannel(cluster, namespace="default", source="orders", uid="uid")  # type: ignore[arg-type]


def test_the_base_is_read_once_for_all_increments(cluster: Cluster) -> None:
    reader = channel(cluster)
    cluster.publish(assignment(4))
    assert reader.claim("0") == 5
    cluster.publish(replace(assignment(6), parallelism=5))
    assert reader.claim("0") == 7

    assert cluster.reads["orders-assignment"] == 2
    assert sum(count for name, count in cluster.reads.items() if name in NAMES) == 1


@pytest.mark.parametrize(
    ("limit", "missing"),
    [(None, 0), (400, 1)],
    ids=["the only part", "one of several"],
)
def test_a_base_that_is_being_replaced_is_read_again(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, limit: int | None, missing: int
) -> None:
    if limit is not None:
        monkeypatch.setattr(storage, "BLOB_LIMIT", limit)
    cluster.publish(assignment(4))
    whole = cluster.blobs[NAMES[missing]]
    cluster.blobs[NAMES[missing]] = Blob()
    reader = channel(cluster)

    with pytest.raises(ChannelError, match="being replaced"):
        reader.claim("0")
    cluster.blobs[NAMES[missing]] = whole
    assert reader.claim("0") == 5


def test_a_config_map_that_cannot_be_read_is_named(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> ConfigMap:
        raise OSError("connection reset")

    monkeypatch.setattr(cluster, "get", fails)
    with pytest.raises(
        ChannelError, match=r"cannot read ConfigMap orders-[a-z]+: connection reset"
    ):
        channel(cluster).claim("0")
