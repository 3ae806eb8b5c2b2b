"""The number that a driver claims, and whose report it replaces, in a folder and in Kubernetes."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from lightkube import ApiError
from lightkube.models.meta_v1 import ObjectMeta, Status
from lightkube.resources.core_v1 import ConfigMap

from balanced_source.documents import assignment as assignment_document
from balanced_source.documents import report as report_document
from balanced_source.documents.assignment import Assignment
from balanced_source.documents.report import HostReport
from balanced_source.documents.storage import Blob, pack, unpack
from balanced_source.errors import FencedError
from balanced_source_adapters.folder import assignment_path, report_path, write_atomically
from balanced_source_spark.channels.errors import ChannelError
from balanced_source_spark.channels.folder import FolderChannel
from balanced_source_spark.channels.kubernetes import KubernetesChannel

READERS, ASSIGNMENT = "orders-readers", "orders-assignment"


def report(incarnation: int, **changes: Any) -> HostReport:
    return HostReport(incarnation=incarnation, instance=f"driver-{incarnation}", **changes)


def assignment(incarnation: int) -> str:
    return assignment_document.encode(
        Assignment(epoch=1, parallelism=1, incarnations={"0": incarnation}), source="uid"
    )


def text_of(found: HostReport) -> str:
    return report_document.encode(found, source="uid")


class Cluster:
    """ConfigMaps at an API server."""

    def __init__(self) -> None:
        self.blobs = {READERS: Blob(), ASSIGNMENT: Blob()}
        self.revision = 1
        self.refusals: list[Exception] = []

    def put(self, name: str, text: str) -> None:
        self.blobs[name] = pack(text)
        self.revision += 1

    @property
    def stored(self) -> HostReport:
        return report_document.decode(unpack(self.blobs[READERS]), source="uid")

    def get(self, kind: Any, name: str, *, namespace: str) -> ConfigMap:
        return self._config_map(name)

    def patch(self, kind: Any, name: str, body: Mapping[str, Any], *, namespace: str) -> ConfigMap:
        if self.refusals:
            raise self.refusals.pop()
        # Without a revision the API server overwrites whatever is there.
        if body["metadata"]["resourceVersion"] not in (None, str(self.revision)):
            raise refused(409)
        self.blobs[name] = Blob(data=body["data"] or {}, binary=body["binaryData"] or {})
        self.revision += 1
        return self._config_map(name)

    def _config_map(self, name: str) -> ConfigMap:
        blob = self.blobs[name]
        metadata = ObjectMeta(name=name, resourceVersion=str(self.revision))
        return ConfigMap(metadata=metadata, data=dict(blob.data), binaryData=dict(blob.binary))


def refused(code: int) -> ApiError:
    return ApiError(status=Status(code=code, message="no"))


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def channel(cluster: Cluster) -> KubernetesChannel:
    return KubernetesChannel(cluster, namespace="shop", source="orders", uid="uid")  # type: ignore[arg-type]


CLAIMS = pytest.mark.parametrize(
    ("reported", "assigned", "claimed"),
    [(None, None, 1), (3, None, 4), (None, 3, 4), (3, 5, 6), (5, 3, 6)],
)


@CLAIMS
def test_a_claim_in_a_folder_is_above_every_number_that_was_used(
    tmp_path: Path, reported: int | None, assigned: int | None, claimed: int
) -> None:
    if reported is not None:
        write_atomically(report_path(tmp_path, "0"), text_of(report(reported)))
    if assigned is not None:
        write_atomically(assignment_path(tmp_path), assignment(assigned))

    assert FolderChannel(tmp_path, source="uid").claim("0") == claimed


@CLAIMS
def test_a_claim_in_kubernetes_is_above_every_number_that_was_used(
    cluster: Cluster,
    channel: KubernetesChannel,
    reported: int | None,
    assigned: int | None,
    claimed: int,
) -> None:
    if reported is not None:
        cluster.put(READERS, text_of(report(reported)))
    if assigned is not None:
        cluster.put(ASSIGNMENT, assignment(assigned))

    assert channel.claim("0") == claimed


def test_a_damaged_document_is_no_obstacle_to_a_claim(
    tmp_path: Path, cluster: Cluster, channel: KubernetesChannel
) -> None:
    write_atomically(report_path(tmp_path, "0"), "torn")
    write_atomically(assignment_path(tmp_path), "torn")
    cluster.put(READERS, "torn")
    cluster.put(ASSIGNMENT, "torn")

    assert FolderChannel(tmp_path, source="uid").claim("0") == 1
    assert channel.claim("0") == 1


def test_a_report_replaces_the_former_one(cluster: Cluster, channel: KubernetesChannel) -> None:
    cluster.put(READERS, text_of(report(1)))

    for sequence in (1, 2):
        channel.write(report(2, sequence=sequence))
        assert (cluster.stored.incarnation, cluster.stored.sequence) == (2, sequence)


@pytest.mark.parametrize("other", [report(3), replace(report(2), instance="a twin")])
def test_a_driver_that_was_overtaken_before_its_first_report_is_fenced(
    tmp_path: Path, cluster: Cluster, channel: KubernetesChannel, other: HostReport
) -> None:
    cluster.put(READERS, text_of(other))
    write_atomically(report_path(tmp_path, "0"), text_of(other))

    for written in (channel, FolderChannel(tmp_path, source="uid")):
        with pytest.raises(FencedError, match="another query has taken over"):
            written.write(report(2))
    assert cluster.stored == other


def test_a_driver_that_is_overtaken_between_two_reports_is_fenced(
    cluster: Cluster, channel: KubernetesChannel
) -> None:
    channel.write(report(2))
    cluster.put(READERS, text_of(report(3)))

    with pytest.raises(FencedError, match="incarnation 3 of host 0, this query was incarnation 2"):
        channel.write(report(2, sequence=2))
    assert cluster.stored == report(3)


def test_a_driver_reports_on_after_the_operator_has_changed_labels(
    cluster: Cluster, channel: KubernetesChannel
) -> None:
    channel.write(report(2))
    cluster.revision += 1

    channel.write(report(2, sequence=2))

    assert cluster.stored.sequence == 2


@pytest.mark.parametrize("error", [refused(403), refused(500), httpx2.ConnectError("no route")])
def test_a_report_that_cannot_be_written_names_the_object(
    cluster: Cluster, channel: KubernetesChannel, error: Exception
) -> None:
    channel.write(report(2))
    cluster.refusals = [error]

    with pytest.raises(ChannelError, match="cannot write orders-readers"):
        channel.write(report(2, sequence=2))


def test_a_second_conflict_in_a_row_is_a_passing_fault(
    cluster: Cluster, channel: KubernetesChannel
) -> None:
    channel.write(report(2))
    cluster.refusals = [refused(409), refused(409)]

    with pytest.raises(ChannelError, match="cannot write orders-readers"):
        channel.write(report(2, sequence=2))
