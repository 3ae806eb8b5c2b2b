"""Examples of reports, and of what they share with other documents, for `support.golden`."""

from dataclasses import replace

from balanced_source.api import Problem, SourceEvent, SplitId
from balanced_source.documents import lags
from balanced_source.documents.alignment import SourceWatermark
from balanced_source.documents.assignment import NumberedEvent
from balanced_source.documents.calls import CallAnswer, CallError, WantedCall
from balanced_source.documents.report import HostReport

T: list[SplitId] = [("c", "t", partition) for partition in range(6)]
EVENT = NumberedEvent(number=3, subtask_id=1, event=SourceEvent(name="hello", payload={"n": 1}))

REPORT = HostReport(
    host="1",
    incarnation=2,
    instance="abc",
    lineage=1,
    sequence=4,
    epoch=5,
    parallelism=2,
    owners={T[1]: 1},
    positions={T[1]: 42},
    retained={T[4]: 7},
    attributes={T[1]: {"stop": 100}},
    lag=11,
    heartbeat=1700000000.5,
    location="node-1",
    events=(EVENT,),
    events_seen=2,
    metrics={"rate": 1.5},
    alignment=SourceWatermark(
        group="g", watermark=1700000000123, max_drift=60000, idle_timeout=30.0
    ),
    problems=(
        Problem(
            reason="LogTruncated",
            message="3 records of orders/0 are gone",
            scope="c",
            is_fatal=True,
        ),
    ),
)
CALLS = (
    WantedCall(id="ab-1", call={"list": "/data"}),
    WantedCall(id="ab-2", call={"list": "/more"}, page=3),
)
ANSWERS = (
    CallAnswer(
        id="ab-1",
        error=CallError(
            message="no such folder", reason="NotFound", scope="/data", is_refused=True
        ),
    ),
    CallAnswer(id="ab-2", digest="00ff", page=3, pages=4, data="QlpoOQ=="),
)

LAGS = replace(
    REPORT,
    alignment=None,
    problems=(),
    metrics={"skew": 1.0, **lags.to_metrics({T[0]: 3, T[1]: None}, {})},
)
"""A report with a lag per split: part of `metrics`, so operators of all versions read it."""
