"""Several applications of one source: they come, take over splits, go, fail to start, and are stopped together."""

import pytest

from balanced_source_operator.resources.identity import Identity
from balanced_source_operator.resources.kinds import CONFIG_MAP, KUBEFLOW_APPLICATION, ROLE
from support.cluster_story import NAMESPACE, Story
from support.fake_kubernetes import Fault
from support.host_drivers import Drivers, application, base
from support.played_story import played
from support.virtual_time import clock
from support.world import UID


def test_a_source_becomes_two_applications_without_a_restart_and_one_again() -> None:
    async def play(story: Story) -> None:
        drivers = Drivers(story)
        await story.begin(parallelism=4)
        await drivers.rest("0")
        first = drivers.of["0"].host.incarnation

        story.patch(application=application(count=2))
        await drivers.rest("0", "1")
        assert story.applications == ["orders-1", f"{base('1')}-1"]
        assert drivers.of["0"].host.incarnation == first
        assert [host["splits"] for host in story.status["hosts"]] == [4, 4]
        assert story.status["runningHosts"] == "2/2"
        assert story.server.find(ROLE, NAMESPACE, f"{base('1')}-documents") is not None

        story.broker.ends = {split: end + 3 for split, end in story.broker.ends.items()}
        story.patch(application=application(count=1))
        await drivers.rest("0")
        assert story.status["hosts"] == []
        assert "Suspended" not in story.events
        assert "ApplicationStopping" in story.events
        drivers.check_each_once()

    played(play)


def test_hosts_follow_the_number_of_readers() -> None:
    async def play(story: Story) -> None:
        drivers = Drivers(story)
        await story.begin(parallelism=4, application=application(readersPerHost=2))
        await drivers.rest("0", "1")
        story.patch(parallelism=6)
        await drivers.rest("0", "1", "2")
        story.patch(parallelism=2)
        await drivers.rest("0")
        drivers.check_each_once()

    played(play)


def test_changed_settings_restart_one_host_after_the_other() -> None:
    async def play(story: Story) -> None:
        drivers = Drivers(story)
        await story.begin(parallelism=4, application=application(count=2))
        await drivers.rest("0", "1")
        drivers.absent.add("0")

        story.patch(application={**application(count=2), "image": "balanced-source/spark:next"})
        await story.until(lambda: [drivers.step(), story.applications[-1] == "orders-1"][1], "the first host again")
        due = clock() + 60
        await story.until(lambda: [drivers.step(), clock() >= due][1], "a minute")
        assert story.applications == ["orders-1", f"{base('1')}-1", "orders-1"], "the second host waits its turn"
        assert len(drivers.of["1"].host.durable.owners) == 4

        drivers.absent.clear()
        await story.until(
            lambda: [drivers.step(), story.applications[3:] == [f"{base('1')}-1"]][1], "the second host again"
        )
        await drivers.rest("0", "1")
        assert {host["image"] for host in story.status["hosts"]} == {"balanced-source/spark:next"}
        drivers.check_each_once()

    played(play)


def test_a_host_that_cannot_start_holds_up_nobody() -> None:
    async def play(story: Story) -> None:
        drivers = Drivers(story)
        drivers.absent.add("1")
        await story.begin(parallelism=4, application=application(count=2))

        def reads_everything() -> bool:
            drivers.step()
            return len(drivers.of["0"].host.durable.owners) == 8

        await story.until(reads_everything, "host 0 to read what host 1 does not")
        degraded = next(c for c in story.status["conditions"] if c["type"] == "Degraded")
        assert degraded["reason"] == "ReadersMissing"
        assert degraded["message"].startswith("Host 1 has not registered for 300 s. The other hosts read its share")

        drivers.absent.clear()
        await drivers.rest("0", "1")
        drivers.check_each_once()

    played(play)


def test_suspend_stops_all_hosts_and_resume_starts_them_again() -> None:
    async def play(story: Story) -> None:
        drivers = Drivers(story)
        await story.begin(parallelism=4, application=application(count=2))
        await drivers.rest("0", "1")

        story.patch(suspend=True)
        await story.until(lambda: not story.server.select(KUBEFLOW_APPLICATION, NAMESPACE), "all to be stopped")
        story.patch(suspend=False)

        await drivers.rest("0", "1")
        drivers.check_each_once()

    played(play)


def test_a_host_that_leaves_may_end_by_itself() -> None:
    async def play(story: Story) -> None:
        drivers = Drivers(story)
        await story.begin(parallelism=4, application=application(count=2))
        await drivers.rest("0", "1")

        story.patch(application=application(count=1))
        await story.until(lambda: "Leaving" in [h["role"] for h in story.status["hosts"]], "the host to leave")
        ended = {"status": {"applicationState": {"state": "COMPLETED"}}}
        story.server.edit(KUBEFLOW_APPLICATION, NAMESPACE, f"{base('1')}-1", ended)
        await story.until(lambda: [h["state"] for h in story.status["hosts"]] == ["Running", "Finished"], "its end")
        await drivers.rest("0")

        assert "ApplicationEnded" not in story.events
        drivers.check_each_once()

    played(play)


def test_a_document_of_a_further_host_that_is_deleted_is_restored() -> None:
    async def play(story: Story) -> None:
        drivers = Drivers(story)
        await story.begin(parallelism=4, application=application(count=2))
        await drivers.rest("0", "1")
        name = f"{base('1')}-assignment"
        before = story.server.find(CONFIG_MAP, NAMESPACE, name)
        assert before is not None

        story.server.remove(CONFIG_MAP, NAMESPACE, name)

        await story.until(lambda: story.server.find(CONFIG_MAP, NAMESPACE, name) is not None, "the document again")

    played(play)


def test_an_invalid_spec_after_a_restart_of_the_operator_removes_no_host() -> None:
    async def play(story: Story) -> None:
        drivers = Drivers(story)
        await story.begin(parallelism=4, application=application(count=2))
        await drivers.rest("0", "1")
        story.patch(assignment={"strategy": "nothing of this name"})
        await story.operators.pop().stop()
        story.start_operator()

        due = clock() + 60
        await story.until(lambda: [drivers.step(), clock() >= due][1], "a minute")

        assert len(story.server.select(KUBEFLOW_APPLICATION, NAMESPACE)) == 2
        assert len(drivers.of["1"].host.durable.owners) == 4

    played(play)


@pytest.mark.parametrize("lost", ["state", "state and assignments"])
def test_a_host_that_leaves_while_documents_are_lost_hands_over_first(lost: str) -> None:
    async def play(story: Story) -> None:
        drivers = Drivers(story)
        await story.begin(parallelism=4, application=application(count=2))
        await drivers.rest("0", "1")
        drivers.absent.add("1")
        story.patch(application=application(count=1))
        documents = [Identity(namespace=NAMESPACE, name="orders", uid=UID).on_host(h).documents for h in ("0", "1")]
        await story.until(lambda: [drivers.step(), is_leaving(story, documents[0].state)][1], "host 1 to leave")
        await story.operators.pop().stop()

        story.server.remove(CONFIG_MAP, NAMESPACE, documents[0].state)
        for names in documents if lost != "state" else ():
            story.server.remove(CONFIG_MAP, NAMESPACE, names.assignment)
        story.broker.ends = {split: end + 3 for split, end in story.broker.ends.items()}
        drivers.absent.clear()
        story.start_operator()

        await drivers.rest("0")
        drivers.check_each_once()

    played(play)


def is_leaving(story: Story, name: str) -> bool:
    """Whether a host is on its way out, by the stored state."""
    found = story.server.find(CONFIG_MAP, NAMESPACE, name)
    return found is not None and "Leaving" in str(found)


def test_an_operator_that_dies_anywhere_leaves_each_record_delivered_once() -> None:
    for at in range(40, 130, 15):

        async def play(story: Story) -> None:
            drivers = Drivers(story)
            await story.begin(parallelism=4)
            await drivers.rest("0")
            story.patch(application=application(count=2))
            await drivers.rest("0", "1")
            story.patch(application=application(count=1))
            await drivers.rest("0")
            drivers.check_each_once()

        played(play, Story(fault=Fault.KILLED, at=at))
