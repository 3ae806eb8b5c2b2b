"""What the driver may do: read its assignment and write its report, nothing else."""

from collections.abc import Collection, Mapping
from typing import Any

from balanced_source.documents.parts import part_names
from balanced_source_operator.resources.identity import Identity
from balanced_source_operator.resources.kinds import ROLE, ROLE_BINDING


def role(source: Identity) -> dict[str, Any]:
    """Role on exactly these ConfigMaps: the assignment with its parts, and the report.

    The operator makes them, so that no one needs `create`.
    """
    names = source.documents
    return {
        "apiVersion": ROLE.api_version,
        "kind": ROLE.kind,
        "metadata": source.metadata(f"{source.base}-documents"),
        "rules": [
            {
                "apiGroups": [""],
                "resources": ["configmaps"],
                "resourceNames": [names.assignment],
                "verbs": ["get", "list", "watch"],
            },
            {
                "apiGroups": [""],
                "resources": ["configmaps"],
                "resourceNames": list(part_names(names.assignment)),
                "verbs": ["get"],
            },
            {
                "apiGroups": [""],
                "resources": ["configmaps"],
                "resourceNames": [names.readers],
                "verbs": ["get", "patch"],
            },
        ],
    }


def role_binding(source: Identity, accounts: Collection[str]) -> dict[str, Any]:
    """Binds the role to the service accounts of the drivers."""
    return {
        "apiVersion": ROLE_BINDING.api_version,
        "kind": ROLE_BINDING.kind,
        "metadata": source.metadata(f"{source.base}-documents"),
        "roleRef": {
            "apiGroup": ROLE.group,
            "kind": ROLE.kind,
            "name": f"{source.base}-documents",
        },
        "subjects": [
            {"kind": "ServiceAccount", "name": account, "namespace": source.namespace}
            for account in sorted(accounts)
        ],
    }


def grants_the_same(stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Return whether a stored Role or RoleBinding says what `wanted` says.

    What the API server adds does not count.
    """
    fields = wanted.keys() - {"apiVersion", "kind", "metadata"}
    return all(stored.get(field) == wanted[field] for field in fields)
