"""The whole way on real pods; needs root on Linux, or an engine (CLUSTER=kind)."""

import os
from pathlib import Path

import pytest

from e2e.node.scene import Scene
from e2e.node.story import play
from testbed.choice import new_cluster
from testbed.node import system
from testbed.progress import Progress

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(os.geteuid() != 0, reason="a real node needs root"),
]


def test_every_record_is_delivered_exactly_once_on_real_pods(tmp_path: Path) -> None:
    share = tmp_path / "run" / "share"
    kind = os.environ.get("CLUSTER", "node")
    with new_cluster(
        kind, tmp_path / "run", share=share, kafka=["main"], progress=Progress()
    ) as cluster:
        outcome = play(Scene(cluster, share), Progress())
    assert outcome.is_ok, (outcome.line, outcome.complaints, outcome.delivery.examples)
    assert system.left_overs(tmp_path / "run") == []
    assert not system.STATE.exists()
