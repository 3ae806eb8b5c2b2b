"""Metrics of the operator: a value that is unknown now has no series."""

import pytest
from prometheus_client import generate_latest

from balanced_source_operator.kube.port import ConflictError, KubernetesError, RefusedError
from balanced_source_operator.metrics import OF_SIGNALS, Metrics
from balanced_source_operator.resources.identity import Identity
from balanced_source_operator.resources.kinds import POD
from balanced_source_operator.runtime.metered import MeteredApi
from balanced_source_operator.spec.status import Condition, Status
from support.fake_kubernetes import FakeKubernetes

SOURCE = Identity(namespace="n", name="s", uid="u")


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(
        f"balanced_source_{name}", {"namespace": "n", "source": "s", **labels}
    )


def conditions(**statuses: str) -> list[Condition]:
    stamp = "2026-01-01T00:00:00Z"
    return [
        Condition(
            type=kind,
            status=status.split()[0],
            last_transition_time=stamp,
            reason=status.split()[1],
        )
        for kind, status in statuses.items()
    ]


def test_a_lag_that_becomes_unknown_does_not_keep_its_last_value() -> None:
    metrics = Metrics()

    metrics.observe(SOURCE, Status(lag=7))
    assert value(metrics, "lag_records") == 7
    metrics.observe(SOURCE, Status(lag=None))
    assert value(metrics, "lag_records") is None
    metrics.observe(SOURCE, Status(lag=0))
    assert value(metrics, "lag_records") == 0
    metrics.observe(SOURCE, Status(seconds_behind=7))
    assert (value(metrics, "lag_records"), value(metrics, "behind_seconds")) == (None, 7)
    metrics.observe(SOURCE, Status())
    assert value(metrics, "behind_seconds") is None


def test_a_condition_has_its_status_and_only_its_present_reason() -> None:
    metrics = Metrics()

    metrics.observe(
        SOURCE, Status(conditions=conditions(Ready="False Discovering", DataLoss="True TopicGone"))
    )
    assert value(metrics, "condition", type="Ready") == 0
    assert value(metrics, "condition", type="DataLoss") == 1
    metrics.observe(SOURCE, Status(conditions=conditions(Ready="True Reading")))

    assert value(metrics, "condition", type="Ready") == 1
    assert value(metrics, "condition", type="DataLoss") is None
    assert value(metrics, "condition_reason", type="Ready", reason="Discovering") is None
    assert value(metrics, "condition_reason", type="Ready", reason="Reading") == 1


def test_a_source_that_is_gone_leaves_no_series() -> None:
    metrics = Metrics()
    with metrics.turn(SOURCE):
        metrics.published(SOURCE)
        metrics.created(SOURCE)
    metrics.observe(
        SOURCE,
        Status(lag=1, conditions=conditions(Ready="True Reading")),
        dict.fromkeys(OF_SIGNALS, 1.0),
    )

    metrics.forget(SOURCE)

    assert b'source="s"' not in generate_latest(metrics.registry)


def test_failed_turns_are_counted_from_zero() -> None:
    metrics = Metrics()
    with metrics.turn(SOURCE):
        assert value(metrics, "failed_turns_total") == 0
    with pytest.raises(ValueError, match="x"), metrics.turn(SOURCE):
        raise ValueError("x")
    assert value(metrics, "failed_turns_total") == 1


def test_the_role_of_the_replica_is_asked_when_metrics_are_read() -> None:
    metrics, roles = Metrics(), {"leader": False, "ready": True}
    metrics.follow(is_leader=lambda: roles["leader"], is_ready=lambda: roles["ready"])

    assert metrics.registry.get_sample_value("balanced_source_leader") == 0
    roles["leader"] = True
    assert metrics.registry.get_sample_value("balanced_source_leader") == 1
    assert metrics.registry.get_sample_value("balanced_source_ready") == 1


@pytest.mark.asyncio
async def test_requests_are_counted_and_their_errors_by_kind() -> None:
    server, metrics = FakeKubernetes(), Metrics()
    api = MeteredApi(server.client(), metrics)

    async def get(error: RefusedError | ConflictError | None = None) -> None:
        allow = (
            server.deny(error, kind=POD, verbs=("get",))
            if isinstance(error, RefusedError)
            else lambda: None
        )
        try:
            await api.get(POD, "n", "p")
        except KubernetesError:
            assert error is not None
        allow()

    await get()
    await get(RefusedError("no", status=403))

    def count(name: str, **labels: str) -> float | None:
        return metrics.registry.get_sample_value(
            f"balanced_source_{name}", {"verb": "get", "kind": "pods", **labels}
        )

    assert count("api_requests_total") == 2
    assert count("api_errors_total", error="403") == 1


def test_a_heartbeat_moves_the_time_of_the_report_only_while_one_is_expected() -> None:
    metrics = Metrics()

    metrics.heard(SOURCE, 1.0)
    assert value(metrics, "report_timestamp_seconds") is None, "nothing is known of it yet"
    metrics.observe(SOURCE, Status(), {"report_timestamp_seconds": 2.0})
    metrics.heard(SOURCE, 3.0)
    assert value(metrics, "report_timestamp_seconds") == 3
    metrics.observe(SOURCE, Status(), {"report_timestamp_seconds": None})
    metrics.heard(SOURCE, 4.0)
    assert value(metrics, "report_timestamp_seconds") is None, "it would grow old, and page people"


def test_a_signal_that_changes_alone_moves_and_what_becomes_unknown_is_gone() -> None:
    metrics, status = Metrics(), Status(lag=7)

    metrics.observe(SOURCE, status, {"epoch_lag": 1.0, "skipped_records": 2.0})
    metrics.observe(SOURCE, status, {"epoch_lag": 3.0, "skipped_records": 2.0})
    assert (value(metrics, "epoch_lag"), value(metrics, "skipped_records")) == (3, 2)
    metrics.observe(SOURCE, status, {"epoch_lag": None, "skipped_records": 2.0})

    assert (value(metrics, "epoch_lag"), value(metrics, "skipped_records")) == (None, 2)
    assert value(metrics, "lag_records") == 7
