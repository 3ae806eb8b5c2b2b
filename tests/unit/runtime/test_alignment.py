"""Two sources of one alignment group, as the operator sees them.

Two reports go in, two documents come out.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from balanced_source.api import MAX_WATERMARK, MIN_WATERMARK
from balanced_source.documents import assignment as assignment_document
from balanced_source.documents import report as report_document
from balanced_source.documents.alignment import GroupWatermark, SourceWatermark
from balanced_source.documents.report import HostReport
from balanced_source.documents.storage import pack, unpack
from balanced_source_operator.resources.documents import blob_of
from balanced_source_operator.resources.kinds import BALANCED_SOURCE, CONFIG_MAP
from balanced_source_operator.runtime.alignment import SETTLE
from support import virtual_time
from support.builders import source_body
from support.cluster_story import NAMESPACE, SPEC, Story
from support.world import UID

UIDS = {"orders": UID, "payments": "uid-of-payments"}
DRIFT, IDLE = 60_000, 30.0


class Pair:
    """Sources `orders` and `payments` with their drivers, of which nothing but reports is seen."""

    def __init__(self, story: Story) -> None:
        self.story = story
        self.sequences = dict.fromkeys(UIDS, 0)
        self.writes = 0

    async def begin(self, group: str = "g") -> None:
        body = source_body(**SPEC)
        body["metadata"] |= {"name": "payments", "uid": UIDS["payments"]}
        await self.story.begin()
        self.story.server.add(BALANCED_SOURCE, body)
        for name in UIDS:
            await self.story.until(
                lambda name=name: self._found(name, "readers"), f"documents of {name}"
            )
        for name, own in {"orders": "g", "payments": group}.items():
            self.says(name, MIN_WATERMARK, group=own)

    def says(self, name: str, watermark: int, *, group: str = "g") -> None:
        self.sequences[name] += 1
        said = SourceWatermark(group=group, watermark=watermark, max_drift=DRIFT, idle_timeout=IDLE)
        report = HostReport(incarnation=1, sequence=self.sequences[name], alignment=said)
        blob = pack(report_document.encode(report, source=UIDS[name]))
        written = {"data": dict(blob.data) or None, "binaryData": dict(blob.binary) or None}
        self.story.server.edit(CONFIG_MAP, NAMESPACE, f"{name}-readers", written)

    def told(self, name: str) -> GroupWatermark | None:
        found = self._found(name, "assignment")
        if found is None:
            return None
        return assignment_document.decode(unpack(blob_of(found)), source=UIDS[name]).alignment

    def epoch(self, name: str) -> int:
        found = self._found(name, "assignment")
        assert found is not None
        return assignment_document.decode(unpack(blob_of(found)), source=UIDS[name]).epoch

    async def until_told(self, name: str, watermark: int) -> None:
        def is_told() -> bool:
            told = self.told(name)
            return told is not None and told.watermark == watermark

        await self.story.until(
            is_told, f"{name} is told {watermark}; it was told {self.told(name)}"
        )

    def _found(self, name: str, suffix: str) -> Any:
        return self.story.server.find(CONFIG_MAP, NAMESPACE, f"{name}-{suffix}")


def play(scene: Callable[[Pair], Any]) -> None:
    story = Story()

    async def run() -> None:
        await scene(Pair(story))
        await story.end()

    virtual_time.run(run())
    assert set(story.broken) <= {"two applications of one host at once"}, "one of each source"


def test_each_source_is_told_of_the_other_without_a_new_epoch() -> None:
    async def scene(pair: Pair) -> None:
        await pair.begin()
        await pair.until_told("orders", MIN_WATERMARK)
        epoch = pair.epoch("orders")

        pair.says("payments", 1_000_000)
        pair.says("orders", 2_000_000)

        await pair.until_told("orders", 1_000_000)
        await pair.until_told("payments", 2_000_000)
        pair.says("payments", MAX_WATERMARK)
        await pair.until_told("orders", MAX_WATERMARK)
        assert pair.epoch("orders") == epoch

    play(scene)


def test_sources_of_another_group_are_not_waited_for() -> None:
    async def scene(pair: Pair) -> None:
        await pair.begin(group="h")
        await pair.until_told("orders", MAX_WATERMARK)

    play(scene)


def test_a_source_that_falls_silent_holds_the_other_for_the_idle_timeout() -> None:
    async def scene(pair: Pair) -> None:
        await pair.begin()
        pair.says("payments", 1_000_000)
        begin = virtual_time.clock()
        await pair.until_told("orders", 1_000_000)

        while (
            virtual_time.clock() < begin + 2 * IDLE and pair.told("orders").watermark == 1_000_000
        ):
            pair.says("orders", 2_000_000)
            await asyncio.sleep(2)

        assert pair.told("orders").watermark == MAX_WATERMARK
        assert virtual_time.clock() >= begin + IDLE

    play(scene)


def test_a_deleted_source_holds_back_no_other_source() -> None:
    async def scene(pair: Pair) -> None:
        await pair.begin()
        pair.says("payments", 1_000_000)
        await pair.until_told("orders", 1_000_000)

        begin = virtual_time.clock()
        pair.story.server.remove(BALANCED_SOURCE, NAMESPACE, "payments")

        await pair.until_told("orders", MAX_WATERMARK)
        assert virtual_time.clock() - begin < 3, "nobody waited for its silence to count"

    play(scene)


def test_documents_are_written_for_steps_and_signs_of_life_only() -> None:
    """A minute in which the other source reports every two seconds, one second further on."""

    async def scene(pair: Pair) -> None:
        await pair.begin()
        pair.says("payments", 1_000_000)
        await pair.until_told("orders", 1_000_000)
        seen = set()
        begin = virtual_time.clock()

        while (passed := virtual_time.clock() - begin) < 60:
            pair.says("payments", 1_000_000 + int(passed * 1000))
            pair.says("orders", 2_000_000)
            seen.add(pair.told("orders"))
            await asyncio.sleep(2)

        assert 6 <= len(seen) <= 8, (
            "one per third of the idle timeout, and one now and then for a quarter of the drift"
        )

    play(scene)


def test_a_new_operator_sends_no_watermark_before_all_sources_have_reported() -> None:
    async def scene(pair: Pair) -> None:
        await pair.begin()
        pair.says("payments", 1_000_000)
        await pair.until_told("orders", 1_000_000)
        former = pair.told("orders")

        await pair.story.operators.pop().stop()
        pair.story.server.remove(CONFIG_MAP, NAMESPACE, "payments-readers")
        pair.story.start_operator()
        await asyncio.sleep(SETTLE / 2)

        assert pair.told("orders") == former

    play(scene)


def test_an_operator_that_takes_over_a_namespace_sends_no_watermark_before_all_have_reported() -> (
    None
):
    """It has served other namespaces for long, or this one before."""

    async def scene(pair: Pair) -> None:
        await pair.begin()
        operator = pair.story.operators[0]
        pair.says("payments", 1_000_000)
        await pair.until_told("orders", 1_000_000)
        former = pair.told("orders")

        operator.sources.on_namespace(NAMESPACE, False)
        await asyncio.sleep(60)
        pair.story.server.remove(CONFIG_MAP, NAMESPACE, "payments-readers")
        operator.sources.on_namespace(NAMESPACE, True)
        await asyncio.sleep(SETTLE / 2)
        assert operator.supervisor.sources == 2
        assert pair.told("orders") == former

        pair.says("orders", 2_000_000)
        await pair.story.until(lambda: pair.told("orders") != former, "the next watermark")

    play(scene)


def test_an_alignment_group_is_declared_before_the_driver_says_anything() -> None:
    async def scene(pair: Pair) -> None:
        pipeline = {
            **SPEC["application"]["pipeline"],
            "alignment": {"maxDrift": "1m", "group": "g"},
        }
        body = source_body(**{**SPEC, "application": {**SPEC["application"], "pipeline": pipeline}})
        body["metadata"] |= {"name": "payments", "uid": UIDS["payments"]}
        await pair.story.begin()
        pair.story.server.add(BALANCED_SOURCE, body)
        await pair.story.until(lambda: pair._found("orders", "readers"), "documents")

        pair.says("orders", 2_000_000)

        await pair.until_told("orders", MIN_WATERMARK)
        begin = virtual_time.clock()
        while pair.told("orders").watermark == MIN_WATERMARK:
            pair.says("orders", 2_000_000)
            await asyncio.sleep(1)
        assert virtual_time.clock() - begin <= IDLE

    play(scene)
