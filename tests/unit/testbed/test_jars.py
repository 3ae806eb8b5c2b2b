import hashlib
import re
from pathlib import Path

import pytest

from testbed import jars, versions
from testbed.errors import BuildError


def test_the_poms_name_the_versions_of_the_code() -> None:
    kafka = (versions.TESTBED / "jars" / "kafka" / "pom.xml").read_text()
    assert re.findall(r"kafka[_-]\S+</artifactId>\s*<version>([^<]+)<", kafka) == [
        versions.KAFKA,
        versions.KAFKA,
    ]
    spark = jars.read_pins(versions.TESTBED / "jars" / "spark-kafka" / "sha256.txt")
    assert f"spark-sql-kafka-0-10_2.13-{versions.SPARK_KAFKA_CONNECTOR}.jar" in spark
    flink = jars.read_pins(versions.TESTBED / "jars" / "flink" / "sha256.txt")
    assert set(flink) == {
        f"flink-sql-connector-kafka-{versions.FLINK_KAFKA_CONNECTOR}.jar",
        f"flink-sql-gateway-{versions.FLINK}.jar",
    }
    assert (
        f"apache-flink-libraries=={versions.FLINK} "
        in (versions.TESTBED / "flink" / "requirements.txt").read_text()
    )


def test_the_page_about_sinks_adds_the_jars_that_are_tested_with_their_digests() -> None:
    page = (versions.CHECKOUT / "docs" / "how-to" / "sinks.md").read_text()
    added = re.findall(
        r"--checksum=sha256:([0-9a-f]{64}) \\\n +\$M/\S+/([^/ ]+\.jar) /opt/spark/jars/\n", page
    )
    folders = [versions.TESTBED / "jars" / name for name in ("s3", "spark-kafka", "delta")]
    tested = [pin for folder in folders for pin in jars.read_pins(folder / "sha256.txt").items()]

    assert sorted((name, digest) for digest, name in added) == sorted(tested)
    assert page.count("ADD ") == len(tested)


def pins(**jars_by_name: bytes) -> dict[str, str]:
    return {f"{name}.jar": hashlib.sha256(data).hexdigest() for name, data in jars_by_name.items()}


def test_pinned_jars_pass(tmp_path: Path) -> None:
    (tmp_path / "a.jar").write_bytes(b"a")
    jars.verify(tmp_path, pins(a=b"a"))


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        (pins(a=b"other"), "changed: a.jar"),
        (pins(a=b"a", b=b"b"), "missing: b.jar"),
        (pins(), "not pinned: a.jar"),
    ],
)
def test_any_difference_from_the_pins_is_refused(
    tmp_path: Path, wanted: dict[str, str], told: str
) -> None:
    (tmp_path / "a.jar").write_bytes(b"a")
    with pytest.raises(BuildError, match=told):
        jars.verify(tmp_path, wanted)
