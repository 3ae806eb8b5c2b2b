"""What `validate` says about the sink of several hosts: what their drivers would say."""

from typing import Any

import pytest

from balanced_source_operator.validation.manifest import check_manifest
from support.builders import source_body, spec_json

ROOT = "s3a://bucket/"


def found(path: str, hosts: dict[str, int] | None, *, kind: str = "parquet") -> list[str]:
    application: dict[str, Any] = spec_json()["application"]
    pipeline = {**application["pipeline"], "sink": {"format": kind, "options": {"path": path}}}
    application |= {"pipeline": pipeline, **({} if hosts is None else {"hosts": hosts})}
    findings = check_manifest(source_body(application=application), lambda _: {})
    return [f"{'.'.join(map(str, f.path))}: {f.message}" for f in findings]


@pytest.mark.parametrize("hosts", [{"count": 2}, {"readersPerHost": 1}])
def test_the_root_of_a_bucket_has_no_folder_for_a_further_host(hosts: dict[str, int]) -> None:
    (finding,) = found(ROOT, hosts)
    assert finding.startswith("spec.application.pipeline.sink.options.path: ")
    assert "has no folder beside it for host 1" in finding


@pytest.mark.parametrize(
    ("path", "hosts", "kind"),
    [
        (ROOT, None, "parquet"),
        (ROOT, {"count": 1}, "parquet"),
        (ROOT, {"count": 2}, "delta"),
        ("s3a://bucket/orders", {"count": 2}, "parquet"),
        ("s3a://bucket/host={host}", {"count": 2}, "parquet"),
    ],
    ids=["one host", "a count of one", "shared", "a folder", "a folder for each"],
)
def test_what_drivers_accept_is_valid(path: str, hosts: dict[str, int] | None, kind: str) -> None:
    assert found(path, hosts, kind=kind) == []
