"""Checks manifests without an API server.

The CRD's own schema and CEL rules, then what the operator checks.
"""

from balanced_source_operator.validation.findings import Finding, Path, path_text
from balanced_source_operator.validation.manifest import check_manifest, check_spec

__all__ = ["Finding", "Path", "check_manifest", "check_spec", "path_text"]
