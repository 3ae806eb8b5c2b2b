"""``spec.source.custom``.

A source of a connector that is installed besides those of this project.
"""

from typing import Annotated, Any, Final

from pydantic import Field

from balanced_source import names
from balanced_source_operator.contract.base import Model

CUSTOM: Final = "custom"
"""Name of the branch."""

ConnectorName = Annotated[str, Field(min_length=1, max_length=names.MAX_LABEL, pattern=names.LABEL)]
"""Kind of a source."""

Config = Annotated[
    dict[str, Any],
    Field(json_schema_extra={"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
]
"""What the connector's own model describes."""


class Custom(Model):
    """A source of a connector whose package is added to the images of operator and driver."""

    connector: ConnectorName
    """Name of the connector, as its package registers it."""

    config: Config = {}
    """What the connector reads. The API server keeps every field; the connector checks them."""
