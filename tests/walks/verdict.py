"""What must be so once everything is healed."""

from collections.abc import Iterator
from typing import Any, Final

from balanced_source_operator.resources.kinds import NONCE_ANNOTATION
from walks.cast import FIRST_BATCHES
from walks.rules import Rule
from walks.walk import Walk

LONGEST_HAND_OVER: Final = 16.0 + max(FIRST_BATCHES)
"""Seconds that a split may have no reader while hosts hand it over.

The host that takes it may be in its first micro-batch.
"""

SETTLE: Final = 2400.0
"""Seconds until a healed source is as the user asks for it."""

REST: Final = 1200.0
"""Seconds in which nothing must move then."""

CALM: Final = 60.0
"""Seconds between the two: the status may still change."""

LAST_RECORDS: Final = 20.0
"""Seconds in which the last records are read."""

STANDSTILL: Final = 200.0
"""Seconds after which a split without a reader must be reported."""

MAX_RESTARTS: Final = 12
"""Applications that may be created in 25 minutes while something is broken."""


async def settled(walk: Walk, *, is_bounded: bool) -> None:
    """Wait until the source is as the user asks for it."""
    waited = 0.0
    while wrong := _differences(walk, is_bounded=is_bounded):
        if waited >= SETTLE:
            walk.check(Rule.WANTED_SETTINGS, "; ".join(wrong))
        await walk.wait(10)
        waited += 10
    if walk.cast.gaps.longest > LONGEST_HAND_OVER:
        walk.check(Rule.SHORT_GAPS, f"a split had no reader for {walk.cast.gaps.longest:.0f} s")


async def rested(walk: Walk, *, is_bounded: bool, rest: float = REST) -> None:
    """Wait, and check that nothing moves and everything is read."""
    await walk.wait(CALM, every=5)
    applications, epoch = len(walk.story.applications), walk.story.status.get("epoch")
    walk.cast.gaps.clear()
    await walk.wait(rest, every=10)
    walk.check(Rule.NOTHING_MOVES, walk.story.applications[applications:])
    if not is_bounded:
        now = walk.story.status.get("epoch")
        walk.check(Rule.NOTHING_MOVES, now != epoch and f"epoch {epoch} became {now}")
        walk.check(Rule.NOTHING_MOVES, walk.cast.gaps.longest and "a split lost its reader")
    walk.check(Rule.WANTED_SETTINGS, "; ".join(_differences(walk, is_bounded=is_bounded)))
    walk.cast.has_traffic = False
    await walk.wait(LAST_RECORDS)
    walk.check(Rule.NO_RECORD_LOST, walk.cast.lost_records())
    walk.check(Rule.NO_INTERNAL_ERROR, "InternalError" in walk.story.events and "see the events")
    walk.check(Rule.SAFE_WRITES, walk.story.broken)


# --- what the user asks for -----------------------------------------------------------------------


def _differences(walk: Walk, *, is_bounded: bool) -> list[str]:
    """Return how the source differs from what the user asks for; empty if it does not."""
    if is_bounded:
        return [*_wrong_conditions(walk, ready=("True", "Finished")), *_unread(walk)]
    return [
        *_wrong_applications(walk),
        *_wrong_conditions(walk),
        *_wrong_splits(walk),
        *_wrong_hosts(walk),
    ]


def _unread(walk: Walk) -> Iterator[str]:
    if lost := walk.cast.lost_records():
        yield f"{len(lost)} records are not read, such as {lost[0]}"


def _wrong_applications(walk: Walk) -> Iterator[str]:
    images = walk.images()
    if set(images.values()) != {walk.image}:
        yield f"images {images} instead of {walk.image}"
    found = walk.cast.applications()
    nonces = {h: m["metadata"]["annotations"].get(NONCE_ANNOTATION) for h, m in found.items()}
    if set(nonces.values()) != {str(walk.nonce)}:
        yield f"nonces {nonces} instead of {walk.nonce}"


def _wrong_conditions(walk: Walk, ready: tuple[str, ...] = ("True",)) -> Iterator[str]:
    conditions = walk.conditions
    found = conditions.get("Ready", {})
    if (found.get("status"), found.get("reason"))[: len(ready)] != ready:
        yield _words("Ready", found)
    if conditions.get("Degraded", {}).get("status") != "False":
        yield _words("Degraded", conditions.get("Degraded", {}))
    pending = conditions.get("RestartPending", {})
    if "nonce" in str(pending.get("message")):
        yield _words("RestartPending", pending)


def _wrong_splits(walk: Walk) -> Iterator[str]:
    held, splits = walk.cast.splits_read(), walk.story.broker.ends
    if set(held) != set(splits) or set(held.values()) != {1}:
        yield f"{held.total()} splits are held instead of {len(splits)}"
    status = walk.story.status
    if status.get("acknowledgedEpoch") != status.get("epoch"):
        yield f"epoch {status.get('epoch')} is not acknowledged"


def _wrong_hosts(walk: Walk) -> Iterator[str]:
    spec, found = walk.spec, sorted(walk.cast.applications())
    hosts = spec["application"].get("hosts") or {"count": 1}
    count = hosts.get("count") or -(-spec["parallelism"] // hosts["readersPerHost"])
    if len(found) not in {count, min(count, spec["parallelism"])}:
        yield f"hosts {found} instead of {count}"


def _words(kind: str, condition: Any) -> str:
    return f"{kind} {condition.get('status')} {condition.get('reason')}: {condition.get('message')}"


# --- what must be reported ------------------------------------------------------------------------

_NEWS: Final = ("Degraded", "Paused", "RestartPending")
"""Conditions that report something when they are true."""


def reports(walk: Walk) -> list[str]:
    """Return what the conditions report."""
    return [
        _words(kind, condition)
        for kind, condition in walk.conditions.items()
        if (kind in _NEWS and condition["status"] == "True")
        or (kind == "Ready" and condition["status"] != "True")
    ]


async def reported(walk: Walk) -> None:
    """Leave broken what is broken for a while, and check that the status reports it."""
    await walk.wait(400, every=5)
    before = len(walk.story.applications)
    walk.cast.gaps.clear()
    await walk.wait(1500, every=5)
    words, idle = "; ".join(reports(walk)), walk.cast.gaps.longer_than(STANDSTILL)
    others = {h: i for h, i in walk.images().items() if i != walk.image}
    if not words:
        walk.check(Rule.STANDSTILL_REPORTED, idle and f"nothing is reported: no one reads {idle}")
        walk.check(Rule.STANDSTILL_REPORTED, others and f"nothing is reported: images {others}")
    if not any(word in words for word in ("Degraded", "Paused", "Suspended")):
        walk.check(Rule.STANDSTILL_REPORTED, idle and f"no one reads {idle}, but only: {words}")
    restarts = walk.story.applications[before:]
    if len(restarts) > MAX_RESTARTS:
        walk.check(Rule.NO_ENDLESS_RESTARTS, f"{len(restarts)} applications; {words}")
