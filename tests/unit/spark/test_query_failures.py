"""One sentence says why a query has failed; traces, offsets and plans stay in the log."""

import pytest

from balanced_source.query_failures import sentence_of

OFFSETS = """
=== Streaming Query ===
Identifier: orders [id = 1, runId = 2]
Current Committed Offsets: {BalancedStream: {"epoch":3,"positions":[]}}

Traceback (most recent call last):
"""
TRACE = """Traceback (most recent call last):
  File "/site-packages/pyspark/worker.py", line 1, in main
    process()
    ~~~~~~~^^
balanced_source.errors.FatalProblemError: topic orders is gone. Create it
"""
FRAMES = """
\tat org.apache.spark.api.python.BasePythonRunner.handle(PythonRunner.scala:1)
\tat java.base/java.lang.Thread.run(Thread.java:840)

Driver stacktrace:
"""
STREAM = "[STREAM_FAILED] Query orders [id = 1-a, runId = 2-b] terminated with exception: "
JOB = (
    "Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times, most recent failure:"
    " Lost task 0.0 in stage 1.0 (TID 4) (host executor driver): "
)

PLAN = (
    "AnalysisException: [UNRESOLVED_COLUMN] no column foo. SQLSTATE: 42703;\n"
    "'Project ['foo]\n+- Relation\n"
)
JAVA = (
    "Py4JJavaError: An error occurred while calling o55.start.\n"
    f": org.apache.spark.SparkException: no such thing{FRAMES}"
)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("the sink has no path. Set it", "the sink has no path. Set it"),
        (f"{STREAM}it is broken SQLSTATE: XXKST{OFFSETS}", "it is broken"),
        (f"{STREAM}{JOB}org.apache.spark.api.python.PythonException: {TRACE}{FRAMES}", ""),
        (f"{STREAM}[X] Failed to plan: {TRACE} SQLSTATE: 38000{OFFSETS}", ""),
        (f"{STREAM}{JOB}java.io.IOException: no space{FRAMES}{OFFSETS}", "IOException: no space"),
        (PLAN, "AnalysisException: [UNRESOLVED_COLUMN] no column foo."),
        (JAVA, "SparkException: no such thing"),
        ("", ""),
    ],
)
def test_the_reason_is_found(text: str, sentence: str) -> None:
    expected = sentence or "FatalProblemError: topic orders is gone. Create it"

    assert sentence_of(text) == (expected if text else "")
