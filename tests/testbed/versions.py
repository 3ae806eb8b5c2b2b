"""The versions of everything that the testbed runs, in one place.

Modules and jars are pinned by the lock files beside them (`go/*/go.mod`, `jars/*/pom.xml`); the
constants here name what those files pin, and a unit test keeps the two in step.
"""

import tomllib
from pathlib import Path

KUBERNETES = "1.35.4"
ETCD = "3.6.14"
SPARK_OPERATOR = "2.5.2"
HELM = "3.20.2"
HELM_4 = "4.3.1"
KEDA = "2.21.0"
COREDNS = "1.14.3"
PORCUPINE = "1.3.1"
FAKE_GCS_SERVER = "1.56.1"
KAFKA = "4.3.1"
SPARK_KAFKA_CONNECTOR = "4.2.0"
FLINK = "2.2.0"
FLINK_KAFKA_CONNECTOR = "5.0.0-2.2"
SPARK = ("4.2.0", "4.3.0")
"""PySpark versions with a process image; the first is that of the development environment."""

MINIMUM_GO = (1, 26)
MINIMUM_JAVA = 17

TESTBED = Path(__file__).resolve().parent
CHECKOUT = TESTBED.parent.parent
OURS: str = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]["version"]
"""The version of this project: of its wheels, its chart and the operator's image."""
