"""Python's cyclic collector in a process that keeps many objects: a planning process, the operator.

The collector looks at young objects after each 700 that were made, and at all objects after some
rounds of that. The JSON of a stream offset with 4,000 splits is 60,000 lists, of which nothing is
garbage, so that a planning process spent more than half of its time in collections that found
nothing.
"""

import gc
from typing import Final

YOUNG: Final = 50_000
"""Objects that are made, less those that are freed, before the collector looks at young ones.

Garbage in cycles waits for that. In the documents of a source there are no cycles, and those of
clients and event loops take a few MB.
"""


def collect_rarely() -> None:
    """Have the collector of this process look less often, unless it was told to look at nothing.

    Only for a process that is ours alone: in the process of a user the user chooses.
    """
    young, middle, old = gc.get_threshold()
    if young:
        gc.set_threshold(max(young, YOUNG), middle, old)
