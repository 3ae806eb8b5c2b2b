"""A stand-in for a driver, in a pod: a program of its own.

It registers, takes over assignments, logs a line per micro-batch and serves metrics as the packaged
application does, in a second instead of half a minute. Its micro-batches read nothing.
"""

import json
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast

from pyspark.sql.streaming.listener import QueryProgressEvent

from balanced_source.documents import stream_offset
from balanced_source.documents.environment import from_variables
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.host.observation import observe
from balanced_source_spark.channels.kubernetes import in_cluster_config
from balanced_source_spark.driver_metrics import DriverMetrics
from balanced_source_spark.instance import Instance
from balanced_source_spark.progress import ProgressLogger
from support.stand_in_driver import StandInHost
from testbed.process_node.images import ProcessImage
from testbed.versions import CHECKOUT

IMAGE: Final = "balanced-source/spark:stand-in"
_PAUSE: Final = 0.1
"""Seconds between micro-batches."""


def image() -> ProcessImage:
    """Return the image of a process node whose driver is this program."""
    sources = (CHECKOUT / "tests", CHECKOUT / "operator/src", CHECKOUT / "spark_app/src")
    return ProcessImage(
        env={"PYTHONPATH": os.pathsep.join(map(str, sources))},
        entrypoint=(sys.executable, "-m", "support.stand_in_pod"),
        visible=(str(CHECKOUT), str(Path(sys.prefix).resolve()), str(Path(sys.executable).parent)),
    )


def main(is_over: Callable[[float], bool]) -> None:
    """Run micro-batches until `is_over`, which waits for as many seconds, says so."""
    own = from_variables(os.environ)
    metrics = DriverMetrics(own.name, namespace=own.namespace, port=own.metrics_port or None)
    driver = StandInHost(
        in_cluster_config(),
        own.namespace,
        own.name,
        own.uid,
        instance=Instance.of_this_process(),
        host=own.host,
    )
    number = 0
    while not is_over(_PAUSE):
        begin = driver.offset
        if driver.batch():
            _tell(metrics, begin, driver.offset, number)
            number += 1


def _tell(metrics: DriverMetrics, begin: StreamOffset, end: StreamOffset, number: int) -> None:
    ends = {split: position or 0 for split, position in end.positions.items()}
    seen = observe(begin, end, ends)
    metrics.note(seen, aligned_to=None)
    progress = SimpleNamespace(
        batchId=number,
        timestamp="",
        numInputRows=0,
        durationMs={},
        sources=[
            SimpleNamespace(
                endOffset=stream_offset.to_json(end), latestOffset=json.dumps({"lag": seen.lag})
            )
        ],
    )
    event: Any = SimpleNamespace(progress=progress)
    ProgressLogger().onQueryProgress(cast("QueryProgressEvent", event))


if __name__ == "__main__":
    main(threading.Event().wait)
