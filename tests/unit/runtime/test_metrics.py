"""Metrics of the operator: a value that is unknown now has no series."""

from balanced_source_operator.metrics import Metrics
from balanced_source_operator.resources.identity import Identity
from balanced_source_operator.spec.status import Status


def test_a_lag_that_becomes_unknown_does_not_keep_its_last_value() -> None:
    metrics, source = Metrics(), Identity(namespace="n", name="s", uid="u")

    def lag() -> float | None:
        return metrics.registry.get_sample_value("balanced_source_lag_records", {"namespace": "n", "source": "s"})

    metrics.observe(source, Status(lag=7))
    assert lag() == 7
    metrics.observe(source, Status(lag=None))
    assert lag() is None
    metrics.observe(source, Status(lag=0))
    assert lag() == 0
