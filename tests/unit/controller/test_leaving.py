"""The status names parts that the spec leaves out and that a micro-batch may still read."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from balanced_source.api import SplitId
from balanced_source.connectors.kafka import KafkaPartitionSplit, TopicList
from balanced_source.coordinator import CoordinatorState, HostPhase, HostState
from balanced_source.coordinator.state import Revocation
from balanced_source.errors import ConnectorError
from balanced_source_operator.contract.half import OperatorHalf, half_of
from balanced_source_operator.controller import leaving as leaving_module
from balanced_source_operator.controller.application_facts import ApplicationState
from balanced_source_operator.controller.conditions import status_of
from balanced_source_operator.controller.decisions import Decision
from balanced_source_operator.controller.leaving import left_out
from support.builders import make_report
from support.status_facts import RUNNING, facts, state
from support.world import kafka_source

SUSPENDED = Decision(state=ApplicationState.PAUSED, reason="Suspended", message="suspended")


def revoked(*split_ids: SplitId, host: str = "0", epoch: int = 4) -> dict[SplitId, Any]:
    found = {}
    for cluster, topic, partition in split_ids:
        split = KafkaPartitionSplit(
            cluster=str(cluster), topic=str(topic), partition=int(partition or 0), offset=7
        )
        found[split.split_id] = Revocation(host=host, epoch=epoch, split=split)
    return found


def known(**changes: Any) -> CoordinatorState[Any]:
    gone = revoked(("dr", "t", 0), ("dr", "t", 1))
    return state(**{"epoch": 4, "revoking": gone, **changes})


def progressing(**changes: Any) -> tuple[str, str, str]:
    found: dict[str, Any] = {"state": known(), **changes}
    before: Any = found["state"]
    left = {} if before is None else dict.fromkeys(before.revoking, "cluster dr")
    status = status_of(facts(**{"left_out": left, **found}))
    condition = next(c for c in status.conditions if c.type == "Progressing")
    return condition.status, condition.reason, condition.message


def test_a_cluster_that_may_still_be_read_is_named() -> None:
    assert progressing() == (
        "True",
        "SplitsLeaving",
        (
            "cluster dr may still be read: the driver finishes its micro-batch first, and adopts"
            " epoch 4 with the next one (2 splits)"
        ),
    )


def test_splits_that_leave_for_another_reason_are_not_named() -> None:
    """Such as files that were read to their end."""
    assert progressing(left_out={})[:2] == ("True", "Adopting")


def test_only_the_hosts_that_hold_such_splits_are_awaited() -> None:
    report = make_report(epoch=3, parallelism=2)
    host = HostState(incarnation=1, phase=HostPhase.ACTIVE, report=report, addressed_epoch=2)
    gone = {**revoked(("dr", "t", 0), host="1"), **revoked(("dr", "t", 1), host="2", epoch=5)}
    hosts = dict.fromkeys(("0", "1", "2", "3"), host)
    everything = known(hosts=hosts, revoking=gone, epoch=5)

    assert progressing(state=everything)[2] == (
        "cluster dr may still be read: each of the hosts 1, 2 finishes its micro-batch first, and"
        " adopts epoch 5 with the next one (2 splits)"
    )
    done = Decision(state=ApplicationState.FINISHED, is_done=True)
    running = dict.fromkeys(hosts, RUNNING)
    one_left = progressing(state=everything, hosts={**running, "2": done})
    assert one_left[2].startswith("cluster dr may still be read: host 1 finishes")
    assert one_left[2].endswith("adopts epoch 4 with the next one (1 split)")
    none_left = progressing(state=everything, hosts={**running, "1": done, "2": done})
    assert none_left[1] == "Adopting", "hosts that have ended in order have committed everything"


def test_a_suspended_source_says_that_it_has_to_run() -> None:
    status, reason, message = progressing(application=SUSPENDED)

    assert (status, reason) == ("True", "SplitsLeaving")
    assert message.endswith("The source is stopped: let it run until then")
    assert progressing(application=SUSPENDED, left_out={})[:2] == ("False", "Stable")
    assert progressing(application=SUSPENDED, state=None)[:2] == ("False", "Stable")


def test_a_problem_of_the_application_comes_first() -> None:
    starting = replace(RUNNING, reason="StartingApplication", message="orders-1 starts")

    assert progressing(application=starting)[1] == "StartingApplication"


@pytest.mark.parametrize(
    ("split_id", "part"),
    [
        (("main", "t", 0), ""),
        (("main", "other", 0), "topic other of cluster main"),
        (("dr", "t", 0), "cluster dr"),
        (("unknown", "t", 0), "cluster unknown"),
    ],
)
def test_kafka_names_the_cluster_or_the_topic(split_id: SplitId, part: str) -> None:
    (inactive,) = kafka_source("dr").clusters
    source = kafka_source("main", inactive=(inactive,), subscriber=TopicList(("t",)))

    assert half_of("kafka").left_out(source, split_id) == part
    found = left_out(source, known(revoking=revoked(split_id)))
    assert found == ({split_id: part} if part else {})


def test_a_split_that_moves_is_not_asked_for() -> None:
    source = kafka_source("main")
    moving = known(owners={("dr", "t", 0): 1})

    assert left_out(source, moving) == {("dr", "t", 1): "cluster dr"}
    assert left_out(source, state()) == {}


class Torn(OperatorHalf[Any]):
    """A half that names nothing."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def to_source(self, *_: Any, **__: Any) -> Any:
        raise AssertionError

    def left_out(self, source: Any, split_id: SplitId) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (KeyError("torn"), "failed on the splits that leave it: KeyError: 'torn'. Report this"),
        (None, "left_out returned a NoneType"),
    ],
)
def test_a_mistake_names_the_connector(
    monkeypatch: pytest.MonkeyPatch, answer: Any, says: str
) -> None:
    halves: Mapping[str, Any] = {"kafka": Torn(answer)}
    monkeypatch.setattr(leaving_module, "half_of", halves.__getitem__)

    with pytest.raises(ConnectorError, match=says):
        left_out(kafka_source("main"), known())


def test_by_default_a_half_names_nothing() -> None:
    assert OperatorHalf.left_out(Torn(None), kafka_source("main"), ("dr", "t", 0)) == ""
