"""What hooks may use, in tests without a query: nothing is known, and nothing is told."""

from typing import Final

from balanced_source_spark.contract.half import Query
from balanced_source_spark.contract.hooks import PlannerContext

CONTEXT: Final[PlannerContext[None]] = PlannerContext(
    query=Query(client_id="me", read=None),
    settings=dict,
    known_settings=dict,
    set_problem=lambda *_: None,
    check_problems=lambda: None,
    send_source_event=lambda *_: True,
)
