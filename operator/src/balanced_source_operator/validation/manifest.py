"""Checks a whole BalancedSource: as the API server does, and as the operator does."""

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from pydantic import ValidationError

from balanced_source.errors import BalancedSourceError, ConnectorError, InvalidSpecError
from balanced_source_operator.contract.choice import SOURCE
from balanced_source_operator.contract.errors import InvalidConfigError, each_in_words
from balanced_source_operator.contract.half import Texts
from balanced_source_operator.controller.translate import to_source
from balanced_source_operator.spec import GROUP, KIND, VERSION, WORDS, BalancedSourceSpec
from balanced_source_operator.spec.crd import custom_resource_definition
from balanced_source_operator.spec.hosts import host_names
from balanced_source_operator.validation.findings import Finding, Path, parsed_path, quoted
from balanced_source_operator.validation.sink import check_sink
from balanced_source_operator.validation.structure import Schema, check, with_defaults

API_VERSION: Final = f"{GROUP}/{VERSION}"
_IN_TEXT: Final = "ConfigMap "
"""How the field of an error in a referenced ConfigMap begins."""


@functools.cache
def schema() -> Schema:
    """Return the schema of a BalancedSource in its CRD."""
    found: Schema = custom_resource_definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


def check_manifest(
    manifest: Any, texts: Callable[[BalancedSourceSpec], Texts | None]
) -> list[Finding]:
    """Return what is wrong with a BalancedSource.

    Args:
        manifest: a document whose kind is BalancedSource.
        texts: returns the texts that a spec refers to; None if they are not known, which skips what
            depends on them.
    """
    if not isinstance(manifest, dict):
        return [
            Finding(path=(), message="must be an object with apiVersion, kind, metadata and spec")
        ]
    found = [*_check_head(manifest), *refused_by_api_server(manifest)]
    if any(finding.path[:1] == ("spec",) and len(finding.path) == 1 for finding in found):
        return found
    return _merged(found, list(check_spec(manifest.get("spec"), texts)))


def _check_head(manifest: Mapping[str, Any]) -> Iterator[Finding]:
    if manifest.get("apiVersion") != API_VERSION:
        yield _other(manifest, "apiVersion", API_VERSION)
    if manifest.get("kind") != KIND:
        yield _other(manifest, "kind", KIND)
    metadata = manifest.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(name, str) or not name:
        yield Finding(
            path=("metadata", "name"),
            message="required field is missing: set the name of the source",
        )


def _other(manifest: Mapping[str, Any], field: str, expected: str) -> Finding:
    path = (field,)
    if manifest.get(field) is None:
        return Finding(path=path, message=f"required field is missing: set it to {expected}")
    return Finding(path=path, message=f"must be {expected}, not {quoted(manifest[field], path)}")


def refused_by_api_server(manifest: Mapping[str, Any]) -> list[Finding]:
    """Return what the API server would refuse by the schema and the CEL rules of the CRD."""
    metadata = manifest.get("metadata")
    named = (
        metadata
        if isinstance(metadata, dict) and isinstance(metadata.get("name"), str)
        else {"name": "unnamed"}
    )
    complete = with_defaults({**manifest, "metadata": named}, schema())
    return list(check(complete, schema()))


def check_spec(raw: Any, texts: Callable[[BalancedSourceSpec], Texts | None]) -> Iterator[Finding]:
    """Yield what the operator would refuse in a spec."""
    try:
        spec = BalancedSourceSpec.model_validate(raw)
    except ValidationError as error:
        for path, message in each_in_words(error, WORDS):
            yield Finding(path=("spec", *path), message=message)
        return
    try:
        known = texts(spec)
        if known is not None:
            to_source(spec, known)
        check_sink(spec.application, hosts=host_names(spec))
    except InvalidConfigError as error:
        at = parsed_path(error.place)
        yield from (Finding(path=(*at, *path), message=text) for path, text in error.findings)
    except InvalidSpecError as error:
        yield _of_operator(error)
    except BalancedSourceError as error:
        yield _of_connector(error)


def _of_operator(error: InvalidSpecError) -> Finding:
    message = str(error).removeprefix(f"{error.field}: ")
    if error.field.startswith(_IN_TEXT):
        return Finding(path=("spec", "source"), message=f"{error.field}: {message}")
    return Finding(path=parsed_path(error.field), message=message)


def _of_connector(error: BalancedSourceError) -> Finding:
    field = error.field if isinstance(error, ConnectorError) else ""
    return Finding(path=parsed_path(field or SOURCE), message=str(error).removeprefix(f"{field}: "))


def _merged(schema_findings: list[Finding], model_findings: list[Finding]) -> list[Finding]:
    """Say each thing once.

    The schema knows unknown fields best, the models have words for patterns.
    """
    final = {finding.path for finding in schema_findings if finding.is_final}
    kept = [
        finding
        for finding in model_findings
        if not any(_covers(path, finding.path) for path in final)
    ]
    reported = {finding.path for finding in kept}
    rest = [
        finding for finding in schema_findings if finding.is_final or finding.path not in reported
    ]
    return sorted([*kept, *rest], key=lambda finding: tuple(map(str, finding.path)))


def _covers(path: Path, other: Path) -> bool:
    return other[: len(path)] == path
