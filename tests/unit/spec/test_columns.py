"""Which columns a spec can choose: a connector says so, and the generic spec knows none of them."""

from typing import Any

import pytest

from balanced_source.errors import InvalidSpecError
from balanced_source_operator.controller.translate import reader_options, to_source
from balanced_source_operator.spec import GROUP, KIND, VERSION, parse_spec
from balanced_source_operator.validation.manifest import refused_by_api_server
from support.builders import spec_json

KAFKA = spec_json()["source"]
FILES = {
    "files": {"paths": ["/data/in"], "format": "Json", "schema": "id BIGINT, `order date` DATE"}
}
KINESIS = {"kinesis": {"streams": ["orders"], "region": "eu-west-1"}}


def raw(source: dict[str, Any], columns: list[str]) -> dict[str, Any]:
    made = spec_json(source=source)
    made["application"]["pipeline"]["columns"] = columns
    return made


def refusals(spec: dict[str, Any]) -> list[str]:
    manifest = {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": KIND,
        "metadata": {"name": "orders"},
        "spec": spec,
    }
    return [finding.message for finding in refused_by_api_server(manifest)]


@pytest.mark.parametrize(
    ("source", "columns"),
    [(KAFKA, ["value", "offset", "timestampType"]), (FILES, ["id", "order date"])],
)
def test_columns_of_the_connector_can_be_chosen(source: dict[str, Any], columns: list[str]) -> None:
    to_source(parse_spec(raw(source, columns)))
    assert refusals(raw(source, columns)) == []


@pytest.mark.parametrize(("source", "column"), [(KAFKA, "valu"), (KINESIS, "data")])
def test_others_are_refused(source: dict[str, Any], column: str) -> None:
    """A connector of another wheel says so only here.

    For those with a branch, the API server says it too.
    """
    with pytest.raises(InvalidSpecError, match="do not have") as caught:
        to_source(parse_spec(raw(source, [column])))

    assert caught.value.field == "spec.application.pipeline.columns"
    (message,) = refusals(raw(source, [column]))
    assert "pipeline.columns names columns that rows of this kind of source do not have" in message


def with_headers(source: dict[str, Any]) -> dict[str, Any]:
    made = spec_json(source=source)
    made["application"]["pipeline"]["includeHeaders"] = True
    return made


def test_kafka_has_headers_and_others_say_that_they_have_none() -> None:
    """The field is older than the other kinds, so the API server accepts it for all of them."""
    spec = parse_spec(with_headers(KAFKA))
    to_source(spec)
    assert reader_options(spec) == {"includeHeaders": "true"}

    with pytest.raises(
        InvalidSpecError, match="sources of kind 'files' do not have this"
    ) as caught:
        to_source(parse_spec(with_headers(FILES)))
    assert caught.value.field == "spec.application.pipeline.includeHeaders"
    assert refusals(with_headers(FILES)) == []


@pytest.mark.parametrize("column", ["a,b", " a", "a\n", ""])
def test_a_name_that_cannot_be_sent_is_refused(column: str) -> None:
    with pytest.raises(InvalidSpecError, match="columns"):
        parse_spec(raw(FILES, [column]))
