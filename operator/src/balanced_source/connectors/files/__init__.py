"""Files as a source: the pure half.

Blocks of files are the splits. They are listed page by page, given to readers that ask for them,
and forgotten when they are read. What is remembered of them is a `Cursor` of bounded size.
"""

from balanced_source.connectors.files.cursor import WINDOW, Cursor, Extent, Key, Seen, Taken, take
from balanced_source.connectors.files.formats import (
    Format,
    compression_of,
    is_splittable,
    is_unreadable,
)
from balanced_source.connectors.files.pattern import (
    base_of,
    compiled,
    is_visible,
    may_hold,
    start_of,
)
from balanced_source.connectors.files.places import (
    StoreKind,
    StorePlace,
    kind_of,
    kind_of_all,
    place_of,
    reached,
    scheme_of,
)
from balanced_source.connectors.files.settings import (
    KIND,
    SKIPPED_BLOCKS,
    FileReaderSettings,
    OnFileLoss,
    Store,
)
from balanced_source.connectors.files.source import (
    LATE,
    PAGE,
    SPLIT_BYTES,
    WHOLE_EVERY,
    FilesSource,
    Listed,
    ListFiles,
    page_of,
    position_of,
    schema_of,
    with_position,
)
from balanced_source.connectors.files.split import SCOPE, BlockSplit, File, blocks, file_of

__all__ = [
    "KIND",
    "LATE",
    "PAGE",
    "SCOPE",
    "SKIPPED_BLOCKS",
    "SPLIT_BYTES",
    "WHOLE_EVERY",
    "WINDOW",
    "BlockSplit",
    "Cursor",
    "Extent",
    "File",
    "FileReaderSettings",
    "FilesSource",
    "Format",
    "Key",
    "ListFiles",
    "Listed",
    "OnFileLoss",
    "Seen",
    "Store",
    "StoreKind",
    "StorePlace",
    "Taken",
    "base_of",
    "blocks",
    "compiled",
    "compression_of",
    "file_of",
    "is_splittable",
    "is_unreadable",
    "is_visible",
    "kind_of",
    "kind_of_all",
    "may_hold",
    "page_of",
    "place_of",
    "position_of",
    "reached",
    "schema_of",
    "scheme_of",
    "start_of",
    "take",
    "with_position",
]
