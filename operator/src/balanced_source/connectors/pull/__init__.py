"""An enumerator for sources whose readers ask for their splits.

Many splits that end, such as files.

The splits are listed once, and wait until a reader asks. A reader host asks on behalf of its
readers, a few splits ahead (`Source.look_ahead`), so a fast reader gets more of them than a slow
one. Life of a split here:

    listed ──► pending ──► assigned ──► read to its end ──► leaves the state
                  ▲            │
                  └─ returned ─┘ its reader is gone, or never heard of it

A request that is not answered yet is not part of the state, because a host repeats what its readers
lack in each report. A split that comes back waits for no request: readers that were told that there
are no more splits do not ask again.

A source whose splits are too many to be listed at once, or come forever, is listed page by page
(`PagedPullSource`): the connector's cursor says what was listed.

Splits that were read are not remembered. So a lost state cannot be rebuilt from what readers hold:
which of the other splits were read is unknown. The enumerator then says so and gives out nothing
more, unless the source accepts that records are delivered twice (`SplitListing.may_repeat`).
"""

from balanced_source.connectors.pull.contract import SplitListing
from balanced_source.connectors.pull.enumerator import PullingSplitEnumerator
from balanced_source.connectors.pull.paging import PagedPullSource, PagingSplitEnumerator
from balanced_source.connectors.pull.source import PullSource
from balanced_source.connectors.pull.values import Conflict, ListSplits, Page, PullState

__all__ = [
    "Conflict",
    "ListSplits",
    "Page",
    "PagedPullSource",
    "PagingSplitEnumerator",
    "PullSource",
    "PullState",
    "PullingSplitEnumerator",
    "SplitListing",
]
