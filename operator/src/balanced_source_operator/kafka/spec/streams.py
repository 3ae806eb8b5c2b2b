"""Ids of streams, which the metadata of ``clustersFrom`` maps to topics."""

from typing import Annotated

from pydantic import Field

from balanced_source_operator.contract.base import LINE

Stream = Annotated[str, Field(min_length=1, max_length=253, pattern=LINE)]
"""Id of a stream."""
