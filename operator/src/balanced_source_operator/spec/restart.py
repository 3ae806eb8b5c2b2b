"""``spec.restart``: what happens after the application has failed.

It is not part of `application`, because a change there restarts the application.
"""

from typing import Annotated

from pydantic import Field

from balanced_source_operator.contract.base import Model


class Restart(Model):
    """Restarts of a failed application. The pause grows with each failure, up to ten minutes."""

    max_failures: Annotated[int, Field(ge=1, le=1000)] | None = None
    """Number of consecutive failures after which the application is not started again. The failed
    application is kept with its log. Absent: no limit."""
