"""Applications for Apache's operator, and where its definition is."""

import os
from pathlib import Path
from typing import Any, Final

from balanced_source_operator.resources.apache_application import apache_application
from support.builders import identity, make_spec

MINIMAL: Final = Path(__file__).parent / "apache_crd" / "sparkapplications.yaml"
"""The fields that this project uses."""

REAL: Final = os.environ.get("BALANCED_SOURCE_APACHE_CRD", "")
"""Path of the real definition; empty if it is not here."""


def build(
    *,
    parallelism: int = 3,
    max_failures: int | None = None,
    is_bounded: bool = False,
    **changes: Any,
) -> dict[str, Any]:
    """Return the manifest for a source whose application has these changes."""
    base = make_spec().application.model_dump(mode="json", by_alias=True, exclude_unset=True)
    spec = make_spec(application={**base, "provider": "Apache", **changes})
    return apache_application(
        identity(),
        spec.application,
        name="orders-1",
        parallelism=parallelism,
        secrets=("login",),
        conf={"spark.ui.enabled": "false"},
        max_failures=max_failures,
        is_bounded=is_bounded,
    )


RICH: Final[dict[str, Any]] = {
    "arguments": ["--now"],
    "imagePullSecrets": ["registry"],
    "serviceAccount": "reader",
    "driver": {"cores": 2, "memory": "3g"},
    "executor": {
        "cores": 2,
        "memory": "5g",
        "template": {"spec": {"containers": [{"name": "sidecar", "image": "i"}]}},
    },
    "sparkConf": {"spark.executor.memory": "1g", "spark.sql.shuffle.partitions": "7"},
}
