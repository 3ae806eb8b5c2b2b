"""What is refused of a source of files before anything runs."""

from typing import Any

import pytest

from balanced_source.api import Boundedness
from balanced_source.connectors.files import FilesSource, Format
from balanced_source.errors import InvalidSpecError
from balanced_source_operator.controller.translate import to_source
from balanced_source_operator.local import read_spec
from balanced_source_operator.spec import parse_spec
from support.builders import spec_json
from testbed.versions import CHECKOUT


def raw(**application: Any) -> dict[str, Any]:
    made = spec_json(source={"files": {"paths": ["/data/in"], "format": "Text"}})
    return {**made, "application": {**made["application"], **application}}


def test_several_hosts_are_refused() -> None:
    to_source(parse_spec(raw()))
    with pytest.raises(
        InvalidSpecError, match="hosts cannot be used with this kind of source"
    ) as caught:
        to_source(parse_spec(raw(hosts={"count": 2})))

    assert caught.value.field == "spec.application.hosts"


@pytest.mark.parametrize(
    ("name", "path"),
    # Of the example
    [("files.yaml", "s3://shop/orders/*.json"), ("files-laptop.yaml", "/tmp/orders")],  # noqa: S108
)
def test_the_examples_are_valid(name: str, path: str) -> None:
    spec = read_spec(CHECKOUT / "examples" / name)
    source = to_source(spec)

    assert isinstance(source, FilesSource)
    assert (source.paths, source.kind_of_file) == ((path,), Format.JSON)
    assert source.boundedness is Boundedness.CONTINUOUS_UNBOUNDED
