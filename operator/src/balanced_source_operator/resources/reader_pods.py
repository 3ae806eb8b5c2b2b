"""The label selector of the scale subresource: which pods an autoscaler may count as readers."""

from collections.abc import Mapping
from typing import Final

from balanced_source_operator.resources.identity import Identity
from balanced_source_operator.spec import GROUP, Application
from balanced_source_operator.spec.application import PACKAGED_APPLICATION

NO_PODS: Final = f"{GROUP}/reader-pods=none"
"""Matches no pod: nothing carries this label.

A selector must not be empty, or autoscalers refuse to work at all.
"""

_EXECUTORS: Final = "spark-role=executor"


def reader_selector(
    source: Identity, application: Application | None, conf: Mapping[str, str]
) -> str:
    """Return a selector that matches one pod for each reader, or none if the numbers differ.

    The horizontal pod autoscaler multiplies by the number of matching pods for metrics of type
    Value, Utilization and Pods. With another number than that of the readers it scales down under
    overload; without any pod it changes nothing and says so. AverageValue works in both cases: it
    counts `status.readers`.

    Args:
        source: the BalancedSource.
        application: its application; None while no valid one is known.
        conf: Spark configuration of the operator's settings.
    """
    has_pod_per_reader = application is not None and _has_pod_per_reader(application, conf)
    return f"{source.selector},{_EXECUTORS if has_pod_per_reader else NO_PODS}"


def _has_pod_per_reader(application: Application, conf: Mapping[str, str]) -> bool:
    """Whether the executors follow the number of readers, with one task slot each."""
    merged = {**conf, **application.spark_conf}
    return (
        application.main_application_file == PACKAGED_APPLICATION
        and application.executor.cores == 1
        and application.executor.warm_spares == 0
        and merged.get("spark.executor.cores", "1") == "1"
        and merged.get("spark.task.cpus", "1") == "1"
        and merged.get("spark.dynamicAllocation.enabled", "false").lower() != "true"
        # Its settings are unknown here, and may be any of these.
        and not application.spark_conf_from
    )
