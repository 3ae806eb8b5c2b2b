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

YOUNG_BESIDE_KOPF: Final = 10_000
"""The same for the operator.

kopf keeps each object that it is told of in cycles, 60 objects and their JSON. Five times as many
of them between two looks would let the memory of the process swing by 10 MB, and what lives long
would lie scattered among them.
"""


def collect_rarely(young: int = YOUNG) -> None:
    """Have the collector of this process look less often, unless it was told to look at nothing.

    Only for a process that is ours alone: in the process of a user the user chooses.

    Args:
        young: see `YOUNG`.
    """
    before, middle, old = gc.get_threshold()
    if before:
        gc.set_threshold(max(before, young), middle, old)
