"""The status says what is the case, and in one sentence what to do."""

from dataclasses import replace
from typing import Any

import pytest

from balanced_source.api import Problem
from balanced_source.coordinator import CoordinatorState, HostPhase, HostRole, HostState
from balanced_source.documents.report import MILLIS_BEHIND
from balanced_source.errors import RefusedDiscoveryError
from balanced_source_operator.contract.half import Losses
from balanced_source_operator.controller.application_facts import ApplicationState
from balanced_source_operator.controller.conditions import status_of
from balanced_source_operator.controller.decisions import Decision
from balanced_source_operator.controller.problems import problems_of
from balanced_source_operator.spec import Status
from support.builders import make_report
from support.status_facts import conditions, facts, state


def test_a_reading_source_is_ready_and_nothing_else() -> None:
    status = status_of(facts())

    assert conditions(status) == {
        "Ready": ("True", "Reading"),
        "Progressing": ("False", "Stable"),
        "Degraded": ("False", "AsExpected"),
    }
    assert (status.readers, status.splits, status.epoch, status.lag) == (2, 5, 3, 7)
    assert (status.balance.min, status.balance.max) == (2, 3)
    assert status.message == "2 readers read 5 splits in epoch 3"
    assert all(c.observed_generation == 4 for c in status.conditions)


@pytest.mark.parametrize(
    ("in_effect", "stored", "observed"),
    [(4, 2, 4), (3, 2, 3), (None, 2, 2), (None, 9, 4), (None, None, 0)],
    ids=["newest", "former", "of an earlier operator", "of the future", "unknown"],
)
def test_what_is_said_of_the_query_is_about_the_spec_in_effect(
    in_effect: int | None, stored: int | None, observed: int
) -> None:
    """`kubectl wait` compares this generation with that of the source."""
    before = [] if stored is None else [{"type": "Progressing", "observedGeneration": stored}]
    found = facts(in_effect=in_effect, previous={"conditions": before})
    status = status_of(found)

    assert {c.type: c.observed_generation for c in status.conditions} == {
        "Ready": observed,
        "Progressing": observed,
        "Degraded": 4,
    }
    assert status.observed_generation == 4


@pytest.mark.parametrize("known", [None, state(epoch=1, acknowledged=0)], ids=["no state", "new"])
def test_a_source_that_is_created_paused_says_so(known: CoordinatorState[Any] | None) -> None:
    nothing = Decision(state=ApplicationState.NONE)
    status = status_of(facts(is_paused=True, state=known, application=nothing))

    assert conditions(status)["Ready"] == ("False", "PausedByAnnotation")
    assert status.message.startswith("not started: ")


@pytest.mark.parametrize(
    ("known", "application"),
    [
        (state(), Decision(state=ApplicationState.NONE)),
        (None, Decision(state=ApplicationState.FAILED, name="orders-1")),
    ],
    ids=["gone", "failed"],
)
def test_a_pause_explains_no_query_that_has_stopped(
    known: CoordinatorState[Any] | None, application: Decision
) -> None:
    status = status_of(facts(is_paused=True, state=known, application=application))

    assert conditions(status)["Ready"] != ("False", "PausedByAnnotation")
    assert conditions(status)["Ready"][0] == "False"


def test_a_pod_that_runs_is_not_ready_before_its_driver_has_reported() -> None:
    status = status_of(facts(starting={"0": "orders-1-driver"}, is_silent=True))

    assert conditions(status) == {
        "Ready": ("False", "WaitingForReaders"),
        "Progressing": ("True", "WaitingForReaders"),
        "Degraded": ("False", "AsExpected"),
    }
    assert status.lag is None
    assert status.message == (
        "driver pod orders-1-driver has started; its readers have not registered yet"
    )


def test_of_a_driver_that_starts_again_only_former_losses_are_known() -> None:
    stall = Problem(reason="QueryStalled", message="Spark has begun no micro-batch for 300 s")
    lost = Problem(reason="LogTruncated", message="records are gone")
    report = make_report(epoch=3, parallelism=2, lag=7, problems=(stall, lost))
    host = HostState(incarnation=1, phase=HostPhase.ACTIVE, report=report)
    starts = facts(state=state(hosts={"0": host}), starting={"0": "orders-1-driver"})

    found = conditions(status_of(starts))
    assert found["Ready"] == ("False", "WaitingForReaders")
    assert found["Degraded"] == ("False", "AsExpected")
    assert found["DataLoss"] == ("True", "LogTruncated")


def test_a_rescale_on_its_way_is_progress_and_still_ready() -> None:
    status = status_of(facts(state=state(epoch=4)))

    assert conditions(status)["Ready"][0] == "True"
    assert conditions(status)["Progressing"] == ("True", "Adopting")


def test_a_host_that_drains_is_what_is_under_way() -> None:
    before = state(epoch=4)
    lost = HostState(role=HostRole.DRAINING, phase=HostPhase.LOST, incarnation=1)

    status = status_of(facts(state=replace(before, hosts={**before.hosts, "1": lost})))

    assert conditions(status)["Progressing"] == ("True", "Draining")
    assert conditions(status)["Ready"] == ("True", "Reading"), "the other host reads on"


def test_a_source_is_not_read_while_its_only_host_drains() -> None:
    lost = HostState(role=HostRole.DRAINING, phase=HostPhase.LOST, incarnation=1)

    status = status_of(facts(state=state(hosts={"0": lost})))

    assert conditions(status)["Ready"][0] == "False"


def test_readers_counts_what_is_adopted_not_what_is_wanted() -> None:
    assert status_of(facts(state=replace(state(epoch=4), parallelism=9))).readers == 2


def test_what_operator_and_driver_say_alike_is_said_once() -> None:
    why = Problem(reason="ClusterUnreachable", message="cluster main does not answer")
    other = Problem(reason="ClusterUnreachable", message="cluster east does not answer")

    status = status_of(facts(problems=(why, other, why)))

    degraded = next(c for c in status.conditions if c.type == "Degraded")
    assert degraded.message.count("main does not answer") == 1
    assert degraded.message.startswith("cluster main"), "the worst comes first"
    assert "east does not answer" in degraded.message
    assert "(and 1 more)" in status.message


def test_before_an_epoch_is_adopted_the_sentence_is_about_both() -> None:
    status = status_of(facts(state=replace(state(epoch=4), parallelism=1)))

    assert status.message == "epoch 3 is read; then 1 reader reads 5 splits in epoch 4"


def test_a_running_query_that_reads_nothing_because_of_a_mistake_is_not_ready() -> None:
    """Such as a topic whose name an edit has misspelt."""
    problem = RefusedDiscoveryError(
        "topic x does not exist: create it", scope="main", reason="UnknownTopic"
    )

    status = status_of(facts(state=replace(state(), owners={}), discovery={"main": problem}))

    assert conditions(status)["Ready"] == ("False", "UnknownTopic")
    assert status.message == "topic x does not exist: create it; no split is assigned to a reader"


def test_a_missing_topic_is_reported_while_the_rest_is_read() -> None:
    problem = RefusedDiscoveryError(
        "topic x does not exist: create it", scope="main", reason="UnknownTopic"
    )

    status = status_of(facts(discovery={"main": problem}))

    assert conditions(status)["Degraded"] == ("True", "UnknownTopic")
    assert conditions(status)["Ready"] == ("True", "Reading")
    assert status.message.startswith("topic x does not exist: create it; 2 readers read")


def test_an_invalid_spec_is_not_ready_although_the_query_runs_on() -> None:
    status = status_of(facts(problems=(Problem(reason="InvalidSpec", message="spec.x: wrong"),)))

    assert conditions(status)["Ready"] == ("False", "InvalidSpec")
    assert status.message == "spec.x: wrong"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        pytest.param(
            {"state": None, "application": Decision(state=ApplicationState.NONE)},
            "Discovering",
            id="nothing yet",
        ),
        pytest.param(
            {
                "application": Decision(
                    state=ApplicationState.PENDING, reason="StartingApplication", message="m"
                )
            },
            "StartingApplication",
            id="starting",
        ),
        pytest.param({"waiting_for": ("b",)}, "Recovering", id="gate"),
        pytest.param(
            {"state": CoordinatorState(epoch=1, hosts={"0": HostState()})},
            "WaitingForReaders",
            id="no reader yet",
        ),
    ],
)
def test_an_operation_in_progress_has_a_reason(changes: dict[str, Any], reason: str) -> None:
    assert conditions(status_of(facts(**changes)))["Progressing"] == ("True", reason)


def test_after_the_deadline_of_the_gate_the_missing_readers_are_named() -> None:
    late = status_of(facts(waiting_for=("b",), is_overdue=True))

    assert conditions(late)["Degraded"] == ("True", "ReadersMissing")
    assert conditions(late)["Progressing"] == ("True", "Recovering")
    message = next(c.message for c in late.conditions if c.type == "Degraded")
    assert message.startswith(
        "waiting for readers of host b; nothing is assigned to them until they register"
    )


def test_a_deadline_without_anybody_missing_says_nothing() -> None:
    assert conditions(status_of(facts(is_overdue=True)))["Degraded"][0] == "False"


def test_suspended_is_not_ready_and_not_progressing() -> None:
    paused = Decision(
        state=ApplicationState.PAUSED, reason="Suspended", message="set spec.suspend to false"
    )

    status = status_of(facts(application=paused))

    assert conditions(status)["Ready"] == ("False", "Suspended")
    assert conditions(status)["Progressing"][0] == "False"


def test_an_application_that_someone_else_has_suspended_is_not_a_suspended_source() -> None:
    """The alert for sources that are not ready leaves out those that are suspended."""
    problem = Problem(reason="ApplicationSuspended", message="by its own spec.suspend")
    paused = Decision(state=ApplicationState.PAUSED, name="orders-1", problem=problem)

    status = status_of(facts(application=paused, hosts={"0": paused}))

    assert conditions(status)["Ready"] == ("False", "ApplicationSuspended")
    assert status.message == "by its own spec.suspend"


def test_a_query_that_has_ended_as_it_should_is_ready() -> None:
    done = Decision(state=ApplicationState.FINISHED, name="orders-1", is_over=True)

    status = status_of(facts(application=done))

    assert conditions(status)["Ready"] == ("True", "Finished")
    assert status.message.startswith("orders-1 has read what there was (trigger availableNow)")


def test_a_query_that_has_ended_without_some_splits_is_not_ready() -> None:
    """`kubectl wait --for=condition=Ready` must not pass."""
    done = Decision(state=ApplicationState.FINISHED, name="orders-1", is_over=True)
    cut = Problem(reason="LogTruncated", message="partition 0 was cut", is_fatal=True)
    slow = Problem(reason="NoLeader", message="partition 1 has no leader")

    def ready(*problems: Problem) -> tuple[str, str]:
        before = state()
        report = replace(make_report(epoch=3, parallelism=2, lag=7), problems=problems)
        hosts = {name: replace(host, report=report) for name, host in before.hosts.items()}
        status = status_of(facts(application=done, state=replace(before, hosts=hosts)))
        assert status.message.startswith("orders-1 has ")
        return conditions(status)["Ready"]

    assert ready(slow, cut) == ("False", "LogTruncated")
    assert ready(slow) == ("True", "Finished")


@pytest.mark.parametrize("state", [s for s in ApplicationState if s != ApplicationState.RUNNING])
def test_readers_are_missing_only_from_an_application_that_runs(state: ApplicationState) -> None:
    waiting = CoordinatorState(epoch=1, hosts={"0": HostState()})

    status = status_of(
        facts(state=waiting, application=Decision(state=state, name="orders-1"), is_overdue=True)
    )

    assert "the application runs" not in status.message
    assert conditions(status)["Degraded"][0] == "False"


def test_a_finished_source_is_ready_for_good() -> None:
    done = Decision(state=ApplicationState.FINISHED, name="orders-1")

    assert conditions(status_of(facts(is_finished=True, application=done)))["Ready"] == (
        "True",
        "Finished",
    )


def test_the_status_keeps_what_is_known_of_the_last_valid_spec() -> None:
    assert status_of(facts(last_valid="{}")).last_valid_spec == "{}"
    assert status_of(facts(last_valid="{}", state=None)).last_valid_spec == "{}"


def test_the_transition_time_changes_with_the_status_only() -> None:
    before = status_of(facts()).model_dump(mode="json", by_alias=True)

    later = status_of(facts(now=1_767_229_200.0, previous=before))
    other = status_of(
        facts(now=1_767_229_200.0, previous=before, problems=(Problem(reason="X", message="y"),))
    )

    stamps = {c.type: c.last_transition_time for c in later.conditions}
    changed = {c.type: c.last_transition_time for c in other.conditions}
    assert set(stamps.values()) == {"2026-01-01T00:00:00Z"}
    assert changed["Degraded"] == "2026-01-01T01:00:00Z"
    assert changed["Ready"] == "2026-01-01T00:00:00Z"


def test_status_never_holds_more_than_a_condition_may() -> None:
    status = status_of(facts(problems=(Problem(reason="X", message="y" * 9999),)))

    assert max(len(c.message) for c in status.conditions) <= 1024


def test_counted_losses_are_a_condition_of_their_own() -> None:
    lost = Losses(
        records=12, problems=(Problem(reason="OffsetsSkipped", message="12 offsets are gone"),)
    )

    status = status_of(facts(losses=lost))

    assert conditions(status)["DataLoss"] == ("True", "OffsetsSkipped")
    assert conditions(status)["Ready"] == ("True", "Reading")
    assert "12 offsets" in next(c.message for c in status.conditions if c.type == "DataLoss")


def test_losses_that_no_driver_could_count_are_an_unknown_condition() -> None:
    """Unknown is not shown as no loss, and no alert takes it for one."""
    doubt = Problem(reason="OffsetsUncounted", message="30 offsets not checked yet")
    gone = Problem(reason="OffsetsSkipped", message="12 offsets are gone")

    unknown = status_of(facts(losses=Losses(records=None, doubts=(doubt,))))
    known = status_of(facts(losses=Losses(records=12, problems=(gone,), doubts=(doubt,))))

    assert conditions(unknown)["DataLoss"] == ("Unknown", "OffsetsUncounted")
    assert conditions(unknown)["Ready"] == ("True", "Reading")
    assert conditions(known)["DataLoss"] == ("True", "OffsetsSkipped")
    message = next(c.message for c in known.conditions if c.type == "DataLoss")
    assert message.startswith("12 offsets are gone; also OffsetsUncounted: 30 offsets")


def reporting(*problems: Problem) -> CoordinatorState[Any]:
    """A state whose driver has reported problems."""
    report = make_report(epoch=3, parallelism=2, problems=problems)
    return state(
        hosts={
            "0": HostState(incarnation=1, phase=HostPhase.ACTIVE, report=report, addressed_epoch=2)
        }
    )


def test_a_problem_that_a_driver_reports_is_a_condition() -> None:
    problem = Problem(
        reason="TopicMismatch", message="topic orders was recreated: set onDataLoss", is_fatal=True
    )

    status = status_of(facts(state=reporting(problem)))

    assert conditions(status)["Degraded"] == ("True", "TopicMismatch")
    assert "DataLoss" not in conditions(status)


def test_of_a_suspended_source_only_losses_that_a_driver_has_reported_degrade() -> None:
    trouble = Problem(reason="ExecutorsMissing", message="no executor")
    loss = Problem(reason="SplitsLost", message="a file is gone", is_fatal=True)
    paused = Decision(state=ApplicationState.PAUSED, reason="Suspended", message="suspended")

    def degraded(*problems: Problem) -> tuple[str, str]:
        report = make_report(epoch=3, parallelism=2, problems=problems)
        host = HostState(incarnation=1, phase=HostPhase.ACTIVE, report=report)
        status = status_of(facts(state=state(hosts={"0": host}), application=paused))
        return conditions(status)["Degraded"]

    assert degraded(trouble)[0] == "False"
    assert degraded(trouble, loss) == ("True", "SplitsLost")


def test_a_loss_that_a_driver_skipped_is_a_condition_of_its_own() -> None:
    lost = Problem(reason="LogTruncated", message="offsets 7 to 9 of orders/0 are gone")

    status = status_of(facts(state=reporting(lost)))

    assert conditions(status)["DataLoss"] == ("True", "LogTruncated")
    assert conditions(status)["Degraded"][0] == "False"


def test_a_loss_that_stops_a_driver_degrades_the_source() -> None:
    lost = Problem(
        reason="LogTruncated", message="offsets 7 to 9 of orders/0 are gone", is_fatal=True
    )

    found = conditions(status_of(facts(state=reporting(lost))))

    assert found["Degraded"] == ("True", "LogTruncated")
    assert "DataLoss" not in found, "nothing was skipped"


def test_the_worst_problem_heads_the_condition_and_the_others_follow() -> None:
    mild = Problem(reason="HashCollapses", message="every topic starts at one reader")
    wrong = Problem(reason="InvalidSpec", message="spec.x: wrong")

    status = status_of(facts(problems=(mild, wrong)))

    assert conditions(status)["Degraded"] == ("True", "InvalidSpec")
    assert degraded_text(status) == (
        "spec.x: wrong; also HashCollapses: every topic starts at one reader"
    )
    assert "spec.x: wrong (and 1 more)" in status.message, "a column of a table is short"


def test_problems_for_which_there_is_no_room_are_counted() -> None:
    wrong = Problem(reason="InvalidSpec", message="a" * 600)
    others = [Problem(reason="HashCollapses", message=letter * 300) for letter in "bcd"]

    text = degraded_text(status_of(facts(problems=(wrong, *others))))

    assert text == f"{'a' * 600}; also HashCollapses: {'b' * 300} (and 2 more)"
    long = Problem(reason="InvalidSpec", message="a" * 2000)
    text = degraded_text(status_of(facts(problems=(long, *others))))
    assert len(text) == 1024
    assert text.endswith("aaa (and 3 more)")


def degraded_text(status: Status) -> str:
    return next(c.message for c in status.conditions if c.type == "Degraded")


def test_the_lag_of_a_driver_that_has_fallen_silent_is_unknown() -> None:
    status = status_of(facts(is_silent=True))

    assert status.lag is None
    assert (status.readers, status.splits, status.epoch) == (2, 5, 3), (
        "what it has adopted stays in Spark's checkpoint"
    )


@pytest.mark.parametrize("reason", ["CheckpointLost", "CheckpointOlder"])
def test_an_altered_checkpoint_degrades_the_source_and_may_have_lost_records(
    reason: str,
) -> None:
    """A sink that recognises micro-batches by their number may skip new records.

    Said once as an event.
    """
    known = facts(state=reporting(Problem(reason=reason, message="the Spark checkpoint is empty")))

    assert conditions(status_of(known))["Degraded"] == ("True", reason)
    assert conditions(status_of(known))["DataLoss"] == ("True", reason)
    assert [problem.reason for problem in problems_of(known)] == [reason]


def test_a_source_that_counts_no_records_says_how_many_seconds_it_is_behind() -> None:
    report = make_report(
        epoch=3, parallelism=2, positions={("s", "a"): 1}, metrics={MILLIS_BEHIND: 1500}
    )
    host = HostState(incarnation=1, phase=HostPhase.ACTIVE, report=report, addressed_epoch=2)

    status = status_of(facts(state=state(hosts={"0": host})))

    assert (status.lag, status.seconds_behind) == (None, 2)
    assert status_of(facts(state=state(hosts={"0": host}), is_silent=True)).seconds_behind is None
