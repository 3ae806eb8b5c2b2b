"""Several applications of one source.

They come, take over splits, go, fail to start, and are stopped together.
"""

import pytest

from balanced_source_operator.kube.port import RefusedError
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


def test_a_host_that_is_added_again_gets_nothing_before_its_new_driver_has_registered() -> None:
    async def play(story: Story) -> None:
        drivers = Drivers(story)
        await story.begin(parallelism=4, application=application(count=2))
        await drivers.rest("0", "1")
        story.patch(application=application(count=1))
        await drivers.rest("0")
        drivers.absent.add("1")

        story.patch(application=application(count=2))
        await story.until(
            lambda: [drivers.step(), len(story.applications) == 3][1], "the application of host 1"
        )
        due = clock() + 60
        await story.until(lambda: [drivers.step(), clock() >= due][1], "a minute")
        assert roles(story) == ["Member", "Joining"]
        assert len(drivers.of["0"].host.durable.owners) == 8, (
            "what its former driver has reported is no registration"
        )

        drivers.absent.clear()
        await drivers.rest("0", "1")
        drivers.check_each_once()

    played(play)


NEXT = "balanced-source/spark:next"


class StartingDrivers(Drivers):
    """Drivers that note which host starts, with how many splits it stopped, and the others'."""

    def __init__(self, story: Story) -> None:
        super().__init__(story)
        self.starts: list[tuple[str, int, int]] = []

    def _run(self, host: str, application: str) -> None:
        found = self.story.server.find(KUBEFLOW_APPLICATION, NAMESPACE, application)
        if found is not None and found.get("status") is None:
            held = {name: len(driver.host.durable.owners) for name, driver in self.of.items()}
            self.starts.append((host, held.pop(host, 0), sum(held.values())))
        super()._run(host, application)


@pytest.mark.parametrize("hosts", [("0", "1"), ("0", "1", "2")])
def test_changed_settings_restart_one_host_after_the_other_and_the_others_read_its_splits(
    hosts: tuple[str, ...],
) -> None:
    async def play(story: Story) -> None:
        drivers = StartingDrivers(story)
        await story.begin(parallelism=6, application=application(count=len(hosts)))
        await drivers.rest(*hosts)
        drivers.starts.clear()

        story.patch(application={**application(count=len(hosts)), "image": NEXT})

        def all_new() -> bool:
            drivers.step()
            assert [host["name"] for host in story.status["hosts"]] == list(hosts)
            return {host["image"] for host in story.status["hosts"]} == {NEXT}

        await story.until(all_new, "all hosts with the new settings")
        await drivers.rest(*hosts)
        assert drivers.starts == [(host, 0, 8) for host in hosts]
        drivers.check_each_once()

    played(play)


class SlowDrivers(Drivers):
    """Drivers that do not come up with new settings while they are held."""

    is_held = True

    def _run(self, host: str, application: str) -> None:
        found = self.story.server.find(KUBEFLOW_APPLICATION, NAMESPACE, application)
        if found is None or found["spec"]["image"] != NEXT or not self.is_held:
            super()._run(host, application)


def test_a_host_waits_its_turn_until_the_one_before_it_reads_again() -> None:
    async def play(story: Story) -> None:
        drivers = SlowDrivers(story)
        await story.begin(parallelism=4, application=application(count=2))
        await drivers.rest("0", "1")
        story.patch(application={**application(count=2), "image": NEXT})
        await story.until(
            lambda: [drivers.step(), len(story.applications) == 3][1], "the first host again"
        )
        due = clock() + 60
        await story.until(lambda: [drivers.step(), clock() >= due][1], "a minute")
        assert story.applications == ["orders-1", f"{base('1')}-1", "orders-1"], (
            "the second host waits its turn"
        )
        assert roles(story) == ["Joining", "Member"]
        assert len(drivers.of["1"].host.durable.owners) == 8

        drivers.is_held = False
        await story.until(
            lambda: [drivers.step(), story.applications[3:] == [f"{base('1')}-1"]][1],
            "the second host again",
        )
        await drivers.rest("0", "1")
        assert {host["image"] for host in story.status["hosts"]} == {NEXT}
        drivers.check_each_once()

    played(play)


def test_a_host_that_does_not_let_go_restarts_all_the_same() -> None:
    async def play(story: Story) -> None:
        drivers = StartingDrivers(story)
        await story.begin(parallelism=4, application=application(count=2))
        await drivers.rest("0", "1")
        drivers.starts.clear()
        drivers.absent.add("0")

        story.patch(application={**application(count=2), "image": NEXT})
        await story.until(lambda: [drivers.step(), len(story.applications) > 2][1], "the restart")
        drivers.absent.clear()
        await drivers.rest("0", "1")
        assert [host for host, _, _ in drivers.starts] == ["0", "1"]
        assert {host["image"] for host in story.status["hosts"]} == {NEXT}
        drivers.check_each_once()

    played(play)


def test_a_change_that_is_taken_back_while_a_host_hands_over_restarts_nothing() -> None:
    async def play(story: Story) -> None:
        drivers = Drivers(story)
        await story.begin(parallelism=4, application=application(count=2))
        await drivers.rest("0", "1")
        made = list(story.applications)
        story.patch(application={**application(count=2), "image": NEXT})
        await story.until(lambda: "Leaving" in roles(story), "host 0 to hand over")

        story.patch(application=application(count=2))

        await drivers.rest("0", "1")
        due = clock() + 60
        await story.until(lambda: [drivers.step(), clock() >= due][1], "a minute")
        assert story.applications == made
        assert [host["splits"] for host in story.status["hosts"]] == [4, 4]
        drivers.check_each_once()

    played(play)


def roles(story: Story) -> list[str]:
    return [host["role"] for host in story.status.get("hosts", [])]


def test_a_host_that_cannot_start_delays_no_other_host() -> None:
    async def play(story: Story) -> None:
        drivers = Drivers(story)
        drivers.absent.add("1")
        await story.begin(parallelism=4, application=application(count=2))

        def reads_everything() -> bool:
            drivers.step()
            return len(drivers.of["0"].host.durable.owners) == 8

        await story.until(reads_everything, "host 0 to read what host 1 does not")
        degraded = next(c for c in story.status["conditions"] if c["type"] == "Degraded")
        assert degraded["reason"] == "ApplicationStuck", "its Spark operator does nothing"
        words = "also ReadersMissing: Host 1 has not registered for 300 s. The other hosts read its"
        assert words in degraded["message"]

        drivers.absent.clear()
        await drivers.rest("0", "1")
        drivers.check_each_once()

    played(play)


def test_a_host_whose_application_is_rejected_delays_no_other_host() -> None:
    """The other hosts are served as soon as they report, and judge the changed settings."""

    async def play(story: Story) -> None:
        drivers = Drivers(story)
        await story.begin(parallelism=4, application=application(count=2))
        await drivers.rest("0", "1")
        quota = RefusedError(
            "exceeded quota: small, requested: count/x=1, used: count/x=2", status=403
        )
        allow = story.server.deny(quota, kind=KUBEFLOW_APPLICATION, verbs=("create",))
        story.patch(application=application(count=3))
        due = clock() + 120
        await story.until(lambda: [drivers.step(), clock() >= due][1], "two minutes")
        assert roles(story) == ["Member", "Member", "Joining"]
        degraded = next(c for c in story.status["conditions"] if c["type"] == "Degraded")
        assert "QuotaExceeded" in degraded["reason"] + degraded["message"]

        asked = clock()
        story.patch(parallelism=7, application=application(count=3))
        await story.until(
            lambda: [drivers.step(), story.status["readers"] == 7][1], "seven readers"
        )
        assert clock() - asked < 5, "one report of each host after the other"

        allow()
        await drivers.rest("0", "1", "2")
        refused = next(c for c in story.status["conditions"] if c["type"] == "Degraded")
        assert refused["status"] == "False"
        drivers.check_each_once()

    played(play)


def test_suspend_stops_all_hosts_and_resume_starts_them_again() -> None:
    async def play(story: Story) -> None:
        drivers = Drivers(story)
        await story.begin(parallelism=4, application=application(count=2))
        await drivers.rest("0", "1")

        story.patch(suspend=True)
        await story.until(
            lambda: not story.server.select(KUBEFLOW_APPLICATION, NAMESPACE), "all to be stopped"
        )
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
        await story.until(
            lambda: "Leaving" in [h["role"] for h in story.status["hosts"]], "the host to leave"
        )
        ended = {"status": {"applicationState": {"state": "COMPLETED"}}}
        story.server.edit(KUBEFLOW_APPLICATION, NAMESPACE, f"{base('1')}-1", ended)
        await story.until(
            lambda: [h["state"] for h in story.status["hosts"]] == ["Running", "Finished"],
            "its end",
        )
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

        await story.until(
            lambda: story.server.find(CONFIG_MAP, NAMESPACE, name) is not None, "the document again"
        )

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


@pytest.mark.parametrize("lost", ["state", "state and assignments", "everything"])
def test_a_host_that_leaves_while_documents_are_lost_hands_over_first(lost: str) -> None:
    async def play(story: Story) -> None:
        drivers = Drivers(story)
        await story.begin(parallelism=4, application=application(count=2))
        await drivers.rest("0", "1")
        drivers.absent.add("1")
        story.patch(application=application(count=1))
        documents = [
            Identity(namespace=NAMESPACE, name="orders", uid=UID).on_host(h).documents
            for h in ("0", "1")
        ]
        await story.until(
            lambda: [drivers.step(), is_leaving(story, documents[0].state)][1], "host 1 to leave"
        )
        await story.operators.pop().stop()

        story.server.remove(CONFIG_MAP, NAMESPACE, documents[0].state)
        for names in documents if lost != "state" else ():
            story.server.remove(CONFIG_MAP, NAMESPACE, names.assignment)
            if lost == "everything":
                story.server.remove(CONFIG_MAP, NAMESPACE, names.readers)
        story.broker.ends = {split: end + 3 for split, end in story.broker.ends.items()}
        drivers.absent.clear()
        story.start_operator()

        await drivers.rest("0")
        drivers.check_each_once()

    played(play)


@pytest.mark.parametrize("is_down", [True, False])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_documents_that_are_all_deleted_leave_each_record_delivered_once(
    is_down: bool, count: int
) -> None:
    """Applications that run are all that tells that the source is not new.

    The number of hosts changes meanwhile: a host whose driver is heard late holds splits.
    """

    async def play(story: Story) -> None:
        drivers = Drivers(story)
        await story.begin(parallelism=4, application=application(count=2))
        await drivers.rest("0", "1")
        story.broker.ends = {split: end + 3 for split, end in story.broker.ends.items()}
        drivers.step()
        if is_down:
            await story.operators.pop().stop()
        drivers.absent.add("1")
        for found in story.server.select(CONFIG_MAP, NAMESPACE):
            story.server.remove(CONFIG_MAP, NAMESPACE, found["metadata"]["name"])
        story.patch(application=application(count=count))
        if is_down:
            story.start_operator()

        due = clock() + 60
        await story.until(lambda: [drivers.step(), clock() >= due][1], "a minute")
        assert len(story.applications) == max(count, 2), "host 1 is heard before it is retired"
        drivers.absent.clear()
        await drivers.rest(*map(str, range(count)))
        drivers.check_each_once()

    played(play)


def is_leaving(story: Story, name: str) -> bool:
    """Whether a host is on its way out, by the stored state."""
    found = story.server.find(CONFIG_MAP, NAMESPACE, name)
    return found is not None and "Leaving" in str(found)


def test_an_operator_that_dies_in_a_rolling_restart_leaves_each_record_delivered_once() -> None:
    for at in range(60, 190, 15):

        async def play(story: Story) -> None:
            drivers = Drivers(story)
            await story.begin(parallelism=4, application=application(count=2))
            await drivers.rest("0", "1")
            story.patch(application={**application(count=2), "image": NEXT})
            await story.until(
                lambda: [
                    drivers.step(),
                    {h["image"] for h in story.status.get("hosts", [])} == {NEXT},
                ][1],
                "new hosts",
            )
            await drivers.rest("0", "1")
            drivers.check_each_once()

        played(play, Story(fault=Fault.KILLED, at=at))


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
