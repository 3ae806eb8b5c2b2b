"""The driver is killed at each step of a micro-batch.

The next one continues, and nothing is lost or repeated.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from testbed.kafka import KafkaCluster
from testbed.versions import CHECKOUT

from .test_stream import everything, options

KILLED = -9


def drive(folder: Path, given: dict[str, str], step: str) -> int:
    """Run a driver to its end; returns its exit code."""
    path = os.pathsep.join(
        str(CHECKOUT / part) for part in ("tests", "operator/src", "spark_app/src")
    )
    call = [sys.executable, "-m", "support.mortal_driver", str(folder), json.dumps(given), step]
    with (folder / "errors").open("a") as errors:
        run = subprocess.run(  # noqa: S603 - our own program
            call, env={**os.environ, "PYTHONPATH": path}, stderr=errors, check=False, timeout=400
        )
    return run.returncode


def newest(log: Path) -> int:
    """Number of the last micro-batch in one of Spark's logs; -1 if there is none."""
    return max((int(path.name) for path in log.glob("[0-9]*")), default=-1)


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_a_driver_that_is_killed_at_any_step_loses_and_repeats_nothing(
    kafka: KafkaCluster, topic: str, tmp_path: Path
) -> None:
    """Offsets logged and nothing run; sink written and not committed; committed.

    The last driver lives.
    """
    given = options(kafka, topic, parallelism="2")
    codes, unfinished = [], []
    for step in ("offsets", "run", "commit", "never"):
        kafka.admin.produce(topic, [b"x"] * 500)
        codes.append(drive(tmp_path, given, step))
        unfinished.append(newest(tmp_path / "ck/offsets") - newest(tmp_path / "ck/commits"))

    written = Counter(
        tuple(record) for path in tmp_path.glob("*.json") for record in json.loads(path.read_text())
    )
    assert codes == [KILLED, KILLED, KILLED, 0]
    assert unfinished == [1, 1, 0, 0], "each was killed where it should be"
    assert written == everything(kafka, topic)
