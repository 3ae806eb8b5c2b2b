"""Runs the cells of a notebook with any Python: ``python bare.py NOTEBOOK RECORDS``.

Needs nothing but the wheels.
"""

import json
import sys
from pathlib import Path


def main(notebook: Path, records: int) -> None:
    """Run the cells, then read once more with the native reader."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    names: dict[str, object] = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            # Our own notebook
            exec(compile("".join(cell["source"]), notebook.name, "exec"), names)  # noqa: S102
    spark: object = names["spark"]
    rows = (
        spark.read.format("balanced")  # type: ignore[attr-defined]
        .option("kafka.bootstrap.servers", names["BROKERS"])
        .option("subscribe", names["TOPIC"])
        .option("reader", "native")
        .load()
    )
    native, streamed = rows.count(), spark.table("orders").count()  # type: ignore[attr-defined]
    sys.stdout.write(f"native={native} streamed={streamed} expected={records}\n")
    sys.exit(0 if native == streamed == records else 1)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
