"""Which acceptance scenario is asserted by which tests.

Collected from the markers, written to `docs/scenarios.md`.
"""

from support.scenario_index.collect import Found, collect
from support.scenario_index.page import CATALOGUE, page

__all__ = ["CATALOGUE", "Found", "collect", "page"]
