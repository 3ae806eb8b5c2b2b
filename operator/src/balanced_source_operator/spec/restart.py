"""``spec.restart``: what happens after the application has failed.

It is not part of `application`, because a change there restarts the application.
"""

from typing import Annotated

from pydantic import Field

from balanced_source_operator.contract.base import Model


class Restart(Model):
    """Restarts of a failed application. The pause between them grows with each failure in a row, up to ten minutes."""

    max_failures: Annotated[int, Field(ge=1, le=1000)] | None = None
    """Failures in a row after which the application is not started again and stays with its log. Absent: no limit."""
