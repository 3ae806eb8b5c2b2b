"""Every field of the custom resource, from the CRD."""

from typing import Final

from balanced_source_operator.cli.markdown import field_table
from balanced_source_operator.spec.crd import custom_resource_definition
from support.reference.markdown import head

ORIGIN: Final = "the models of the custom resource"
TEXT: Final = """All fields of a `BalancedSource` (`balancedsource.io/v1alpha1`). `kubectl explain
bsrc.spec` shows the same descriptions. `[]` stands for an item of a list, `{}` for a value of a
map. [Kafka](../kafka.md) has an example for each field of `spec.source.kafka`. The API server fills
in defaults.
"""


def page() -> str:
    """Return the page."""
    schema = custom_resource_definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"][
        "properties"
    ]
    parts = (f"\n## {part}\n\n" + field_table(schema[part], part) for part in ("spec", "status"))
    return "".join([head("Fields of a BalancedSource", ORIGIN, TEXT), *parts])
