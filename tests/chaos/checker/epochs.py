"""Epochs and deliveries as operations on a register per split, for a linearisability check.

Per split and topic id the register holds the newest adopted epoch and the position. A driver adopts
an epoch with the first micro-batch that it logs in it, and delivers a range between logging and
committing a micro-batch. Each of several hosts has a history of its own; their operations are on
the same registers. The Go program `linearisable` (porcupine) looks for an order of single steps
that explains what was observed.
"""

import heapq
import json
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeAlias

from chaos.checker import spark_files

Operation: TypeAlias = dict[str, Any]


def check(folder: Path, program: Path) -> str | None:
    """Return what is wrong with the history in a folder; None if it is linearisable.

    Raises:
        RuntimeError: the program failed.
    """
    histories = _histories(folder)
    for host, events in histories.items():
        if batches := differing_replays(events):
            return f"micro-batches {batches} of host {host} were planned again with other ranges"
    text = json.dumps(list(operations(histories.values(), truncated(folder / "logs"))))
    # Our own
    done = subprocess.run([program], input=text, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{program} failed: {done.stderr}")
    answer = json.loads(done.stdout)
    return (
        None
        if answer["ok"]
        else f"no order of steps explains the history of split {answer['split']}"
    )


def _histories(folder: Path) -> dict[int, list[dict[str, Any]]]:
    """Return what the driver of each host did."""
    history = folder / "history.jsonl"
    if history.exists():
        return {0: _events(history)}
    return {
        host: spark_files.events(place, host)
        for host, place in spark_files.checkpoints(folder).items()
    }


def truncated(logs: Path) -> frozenset[str]:
    """Return the lines in which the product says that a log was cut: reading goes back there."""
    text = [
        line
        for file in logs.glob("*.log")
        for line in file.read_text(errors="replace").splitlines()
    ]
    return frozenset(line for line in text if "truncated" in line)


def operations(
    histories: Iterable[Iterable[Mapping[str, Any]]], cut: Iterable[str] = ()
) -> Iterator[Operation]:
    """Turn what drivers noted into operations.

    A replay is the same operation: its ranges must be the same.

    Args:
        histories: of each host, in its order.
        cut: see `truncated`; only a split that is named there may go back.
    """
    reached: dict[str, int] = {}
    batches = heapq.merge(*map(_batches, histories), key=itemgetter(0))
    for operation in chain.from_iterable(found for _at, found in batches):
        split, begin, end = operation["split"], operation["from"], operation["to"]
        if operation["kind"] == "deliver":
            back = end if end < begin else begin if begin < reached.get(split, 0) else None
            reached[split] = end
            if back is not None and any(_names(line, split, back) for line in cut):
                yield {**operation, "kind": "reset", "from": back, "return": operation["call"]}
                if back == end:
                    continue  # a micro-batch that only goes back
        yield operation


def _names(line: str, split: str, offset: int) -> bool:
    _cluster, topic, partition, _id = split.split("/", 3)
    return f"topic {topic} " in line and f"partition {partition} from offset {offset} " in line


def _batches(events: Iterable[Mapping[str, Any]]) -> Iterator[tuple[float, list[Operation]]]:
    """Yield when each micro-batch of a host was logged, and its operations."""
    logged: dict[int, Mapping[str, Any]] = {}
    committed: dict[int, float] = {}
    for event in events:
        if event["event"] == "logged":
            logged.setdefault(event["batch"], event)
        else:
            committed.setdefault(event["batch"], event["at"])
    adopted: dict[str, int] = {}
    before = 0.0
    for batch, event in sorted(logged.items()):
        yield event["at"], list(_of_batch(event, committed.get(batch), adopted, before))
        before = event["at"]


def _of_batch(
    event: Mapping[str, Any], committed: float | None, adopted: dict[str, int], before: float
) -> Iterator[Operation]:
    common = {"client": event["pid"], "epoch": event["epoch"]}
    for cluster, topic, partition, topic_id, begin, end in event["ranges"]:
        split = f"{cluster}/{topic}/{partition}/{topic_id}"
        if adopted.get(split) != event["epoch"]:
            adopted[split] = event["epoch"]
            yield {
                **common,
                "split": split,
                "kind": "adopt",
                "call": before,
                "return": event["at"],
                "from": 0,
                "to": 0,
            }
        span = {"call": event["at"], "return": committed, "from": begin, "to": end}
        yield {**common, "split": split, "kind": "deliver", **span}


def differing_replays(events: Iterable[Mapping[str, Any]]) -> list[int]:
    """Return the micro-batches that were logged with different ranges."""
    seen: dict[int, set[str]] = {}
    for event in events:
        if event["event"] == "logged":
            seen.setdefault(event["batch"], set()).add(
                json.dumps([event["epoch"], sorted(map(str, event["ranges"]))])
            )
    return sorted(batch for batch, contents in seen.items() if len(contents) > 1)


def _events(history: Path) -> list[dict[str, Any]]:
    """Read the notes; the last line of a killed driver may be half."""
    found = []
    for line in history.read_text().splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found
