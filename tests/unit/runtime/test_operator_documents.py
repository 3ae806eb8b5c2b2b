"""Documents that someone else writes, edits or deletes; and two operators at once."""

import json
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from balanced_source.coordinator import state_codec
from balanced_source.documents import assignment as assignment_document
from balanced_source.documents import envelope
from balanced_source.documents import report as report_document
from balanced_source.documents.storage import PLAIN_KEY, pack
from balanced_source_operator.controller.liveness import ALIVE
from balanced_source_operator.resources.kinds import BALANCED_SOURCE, CONFIG_MAP
from support import virtual_time
from support.cluster_story import NAMESPACE, Story
from support.played_story import Play, played
from support.virtual_time import clock
from support.world import UID


async def reading(story: Story, **begin: Any) -> None:
    """Eight splits are read by two readers."""
    await story.begin(**begin)
    await story.launched()
    story.driver.start()
    await story.adopted(parallelism=2, splits=8)
    assert "StateRebuilt" not in story.events, "a new source has no state yet"


def check(play: Play) -> Story:
    """Run, end all operators, and look for rules that were broken."""
    story = played(play)
    assert len(story.driver.delivered) == sum(story.broker.ends.values())
    assert story.applications == ["orders-1"]
    return story


def edit(story: Story, suffix: str, text: str) -> None:
    """Someone writes something else into a ConfigMap."""
    story.server.edit(CONFIG_MAP, NAMESPACE, f"orders-{suffix}", {"data": {PLAIN_KEY: text}})


def delete(story: Story, suffix: str) -> None:
    story.server.remove(CONFIG_MAP, NAMESPACE, f"orders-{suffix}")


async def rescale(story: Story, parallelism: int) -> None:
    story.patch(parallelism=parallelism)
    await story.adopted(parallelism=parallelism, splits=8)


@pytest.mark.parametrize("suffix", ["assignment", "enumerator"])
@pytest.mark.parametrize(
    "damage", [lambda s, x: edit(s, x, "{}"), delete], ids=["edited", "deleted"]
)
def test_documents_of_the_operator_are_restored(
    suffix: str, damage: Callable[[Story, str], None]
) -> None:
    async def play(story: Story) -> None:
        await reading(story)
        before = story.documents.text(suffix)
        damage(story, suffix)
        await story.until(
            lambda: story.documents.text(suffix) == before, "the document is there again"
        )
        word = {"assignment": "AssignmentRestored", "enumerator": "StateRestored"}[suffix]
        await story.until(lambda: word in story.events, "somebody said so")
        await rescale(story, 3)

    check(play)


@pytest.mark.parametrize(
    "damage", [lambda s, x: edit(s, x, "{}"), delete], ids=["edited", "deleted"]
)
def test_a_state_that_is_damaged_right_before_it_is_written_is_restored(
    damage: Callable[[Story, str], None],
) -> None:
    """What the operator knows counts more than what no operator can have written."""

    async def play(story: Story) -> None:
        await reading(story)
        damage(story, "enumerator")
        await rescale(story, 3)
        await story.until(lambda: "StateRestored" in story.events, "somebody said so")

    check(play)


@pytest.mark.parametrize("parallelism", [2, 3], ids=["nothing is written", "it is written"])
def test_a_state_of_a_newer_operator_is_left_alone(parallelism: int) -> None:
    async def play(story: Story) -> None:
        await reading(story)
        newer = {**json.loads(story.documents.text("enumerator") or ""), "version": 999}
        edit(story, "enumerator", json.dumps(newer))
        story.patch(parallelism=parallelism)
        await story.until(lambda: _says(story, "Degraded", "StateCorrupt"), "a condition says so")

        assert json.loads(story.documents.text("enumerator") or "") == newer
        assert "StateRestored" not in story.events
        delete(story, "enumerator")
        await rescale(story, 4)

    check(play)


@pytest.mark.parametrize(
    "damage", [lambda s: edit(s, "readers", "{}"), lambda s: delete(s, "readers")]
)
def test_an_edited_or_deleted_report_has_no_owner(damage: Callable[[Story], None]) -> None:
    async def play(story: Story) -> None:
        await reading(story)
        owners = dict(story.owners)
        damage(story)
        await story.until(
            lambda: "orders-readers" in " ".join(story.children()), "a place for the next report"
        )
        assert story.owners == owners
        await rescale(story, 3)

    check(play)


def test_the_state_of_a_newer_release_is_kept_for_it() -> None:
    """After a downgrade: to delete it would lose what only the state knows."""

    async def play(story: Story) -> None:
        await reading(story)
        for operator in list(story.operators):
            await operator.stop()
            story.operators.remove(operator)
        newer = envelope.encode(state_codec.KIND, UID, {}, version=99)
        edit(story, "enumerator", newer)
        story.start_operator()
        await story.until(lambda: _says(story, "Degraded", "StateCorrupt"), "a condition says so")
        message = next(c["message"] for c in story.status["conditions"] if c["type"] == "Degraded")
        assert "EnumeratorState has version 99, this software reads versions up to 4" in message
        assert message.endswith("Upgrade the operator to the release that wrote it")
        assert "delete it" not in message
        epoch = story.seen[-1]
        story.broker.ends = dict.fromkeys(story.broker.ends, 9)
        assert story.driver.batch(), "the query reads on"
        story.driver.report()
        story.patch(parallelism=5)
        began = clock()
        await story.until(lambda: clock() > began + 60, "a minute")
        assert story.documents.text("enumerator") == newer
        assert story.seen[-1] == epoch

    check(play)


def test_state_that_cannot_be_trusted_stops_the_next_operator_and_not_the_query() -> None:
    async def play(story: Story) -> None:
        await reading(story)
        for operator in list(story.operators):
            await operator.stop()
            story.operators.remove(operator)
        edit(story, "enumerator", '{"kind": "EnumeratorState"')
        story.start_operator()
        await story.until(lambda: _says(story, "Degraded", "StateCorrupt"), "a condition says so")
        message = next(c["message"] for c in story.status["conditions"] if c["type"] == "Degraded")
        assert message.startswith(
            "The enumerator state in ConfigMap orders-enumerator cannot be read: "
        )
        assert "or delete it to rebuild the state from the driver's report" in message
        owners = dict(story.owners)
        story.broker.ends = dict.fromkeys(story.broker.ends, 9)
        story.driver.batch()
        delete(story, "enumerator")  # what the message recommends
        await story.until(lambda: story.seen[-1][0] > 1, "a new lineage")
        await story.adopted(parallelism=2, splits=8)
        assert story.owners == owners
        assert "StateRebuilt" in story.events

    check(play)


@pytest.mark.parametrize("is_running", [False, True])
def test_an_older_copy_of_the_state_begins_a_new_lineage(*, is_running: bool) -> None:
    """While no operator runs, or under one that runs."""

    async def play(story: Story) -> None:
        await reading(story)
        older = story.documents.text("enumerator")
        assert older is not None
        await rescale(story, 3)
        await rescale(story, 5)
        for operator in [] if is_running else list(story.operators):
            await operator.stop()
            story.operators.remove(operator)
        edit(story, "enumerator", older)
        if not is_running:
            story.start_operator()
        await story.until(
            lambda: story.assignment is not None and story.assignment.lineage == 2, "a new lineage"
        )
        assert "StateOutdated" in story.events
        await story.adopted(parallelism=5, splits=8)
        await rescale(story, 4)

    check(play)


def test_a_conflict_raises_and_keeps_the_other_decision() -> None:
    """Someone wrote state between our read and our write: nothing of his is overwritten."""

    async def play(story: Story) -> None:
        await reading(story)
        second = story.start_operator(name="operator-2")
        story.patch(parallelism=3)
        await story.until(lambda: "StateConflict" in story.events, "the loser says so")
        await story.adopted(parallelism=3, splits=8)
        await second.stop()
        story.operators.remove(second)

    check(play)


@pytest.mark.parametrize("seed", range(8))
def test_two_operators_at_once_end_where_one_would(seed: int) -> None:
    async def play(story: Story) -> None:
        chance = random.Random(seed)
        await reading(story, operators=2)
        for parallelism in chance.sample(range(1, 9), 4):
            await rescale(story, parallelism)
        assert story.assignment is not None
        counts = [list(story.owners.values()).count(r) for r in range(story.assignment.parallelism)]
        assert max(counts) - min(counts) <= 1

    check(play)


def test_an_assignment_from_the_future_is_not_believed() -> None:
    """A copied document with a higher epoch is someone's edit.

    The driver may follow it only if the state agrees.
    """

    async def play(story: Story) -> None:
        await reading(story)
        known = story.assignment
        assert known is not None
        forged = assignment_document.encode(known, source="somebody-else")
        story.server.edit(
            CONFIG_MAP, NAMESPACE, "orders-assignment", {"data": dict(pack(forged).data)}
        )
        await story.until(lambda: story.documents.text("assignment") != forged, "restored")
        assert story.assignment == known

    check(play)


def test_a_new_source_with_an_old_name_starts_afresh() -> None:
    """Deleted and created again under the same name: nothing of the first one is taken over."""

    async def play(story: Story) -> None:
        await reading(story)
        body = story.server.find(BALANCED_SOURCE, NAMESPACE, "orders")
        story.server.remove(BALANCED_SOURCE, NAMESPACE, "orders")
        namesake = {**body, "metadata": {"namespace": NAMESPACE, "name": "orders", "uid": "uid-2"}}
        story.server.add(BALANCED_SOURCE, namesake)
        await story.until(lambda: len(story.applications) > 1, "an application for the namesake")
        stored = story.server.find(CONFIG_MAP, NAMESPACE, "orders-enumerator")
        assert stored["metadata"]["ownerReferences"][0]["uid"] == "uid-2" != UID
        story.applications.pop()

    check(play)


def test_late_events_of_a_deleted_source_do_not_stop_its_namesake() -> None:
    """Kopf hands on events of different objects in any order, also if they have the same name."""

    async def play(story: Story) -> None:
        await reading(story)
        former = story.server.find(BALANCED_SOURCE, NAMESPACE, "orders")
        story.server.remove(BALANCED_SOURCE, NAMESPACE, "orders")
        namesake = {
            **former,
            "metadata": {"namespace": NAMESPACE, "name": "orders", "uid": "uid-2"},
        }
        story.server.add(BALANCED_SOURCE, namesake)
        await story.until(lambda: len(story.applications) > 1, "an application for the namesake")
        supervisor = story.operators[0].supervisor
        for event in ("MODIFIED", "DELETED"):
            supervisor.on_source(event, former)
        await story.until(lambda: True, "the loop to run")
        assert supervisor.sources == 1
        story.applications.pop()

    check(play)


def _says(story: Story, kind: str, reason: str) -> bool:
    conditions = story.status.get("conditions", [])
    return any(
        c["type"] == kind and c["reason"] == reason and c["status"] == "True" for c in conditions
    )


def test_the_lag_of_a_driver_that_sends_no_heartbeats_any_more_is_not_shown() -> None:
    async def play(story: Story) -> None:
        await reading(story)
        report = report_document.decode(story.documents["0"], source=UID)
        last = replace(report, sequence=report.sequence + 1, lag=7)
        reported_at = virtual_time.clock()
        story.documents["0"] = report_document.encode(last, source=UID)
        await story.until(lambda: story.status.get("lag") == 7, "the lag")

        await story.until(lambda: story.status.get("lag") is None, "the lag to be unknown")
        assert ALIVE <= virtual_time.clock() - reported_at <= ALIVE + 5
        assert story.status["epoch"] == last.epoch

    check(play)
