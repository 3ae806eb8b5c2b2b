"""One interface, three providers: the kind of cluster by its name."""

from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path

from testbed.cluster import Cluster, ProcessCluster
from testbed.errors import TestbedError
from testbed.kind import KindCluster
from testbed.node.cluster import NodeCluster
from testbed.progress import QUIET, Progress
from testbed.versions import SPARK

KINDS = ("process", "node", "kind")
_CHECKED: tuple[type[Cluster], ...] = (ProcessCluster, NodeCluster, KindCluster)
"""The type checker compares them with the interface."""


def new_cluster(
    kind: str,
    run_dir: Path,
    *,
    share: Path,
    kafka: Iterable[str] = (),
    spark_versions: tuple[str, ...] = SPARK[:1],
    progress: Progress = QUIET,
) -> AbstractContextManager[Cluster]:
    """A cluster that is not started yet.

    Args:
        kind: `process` (no privileges), `node` (root on Linux) or `kind` (an engine).
        run_dir: where everything goes.
        share: a folder of the host that pods shall be able to mount under the same path.
        kafka: names of Kafka clusters to start.
        spark_versions: those with an image.
        progress: told about each step.

    Raises:
        TestbedError: there is no such kind.
    """
    if kind == "process":
        return ProcessCluster(
            run_dir, kafka=kafka, spark_versions=spark_versions, progress=progress
        )
    if kind == "node":
        return NodeCluster(run_dir, kafka=kafka, spark_versions=spark_versions, progress=progress)
    if kind == "kind":
        return KindCluster(
            run_dir, share=share, kafka=kafka, spark_versions=spark_versions, progress=progress
        )
    raise TestbedError(
        f"there is no kind of cluster {kind!r}; CLUSTER is one of {', '.join(KINDS)}"
    )
