"""A driver that says all that it can, and reads until it is told to stop; a program of its own.

What it and its JVM and Python workers write goes wherever its parent sends it. A file per
micro-batch has its rows.
"""

import functools
import json
import sys
import threading
from pathlib import Path

from support.queries import start
from support.row_files import write_rows
from support.spark_session import spark_session


def main(folder: str, options: str) -> None:
    """Read into `folder` until the standard input ends."""
    with spark_session() as spark:
        spark.sparkContext.setLogLevel("INFO")
        sink = functools.partial(write_rows, Path(folder))
        trigger = {"processingTime": "200 milliseconds"}
        query = start(spark, sink, Path(folder) / "ck", trigger=trigger, **json.loads(options))

        def stop_when_told() -> None:
            sys.stdin.read()
            query.stop()

        threading.Thread(target=stop_when_told, daemon=True).start()
        query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
