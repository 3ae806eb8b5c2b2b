"""What `make bench-files` measures, in two sizes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

KINDS: Final = ("text", "json", "parquet")
MIB: Final = 1 << 20
KIB: Final = 1 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """A folder that is read from its first file to its last.

    Attributes:
        kind: format.
        files: how many.
        size: bytes of each, about.
    """

    kind: str
    files: int
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Growing:
    """A folder of files of one line, to which a few files are added again and again.

    Attributes:
        steps: numbers of files in the folder at which is measured.
        added: files that appear at once.
        times: how often they appear, in each round.
    """

    steps: tuple[int, ...]
    added: int = 10
    times: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A bucket that is listed as a whole, without Spark.

    Attributes:
        objects: in the bucket.
    """

    objects: int


Case = Backlog | Growing | Listing

FULL: Final[Mapping[str, Case]] = {
    **{f"large-{k}": Backlog(kind=k, files=300, size=10 * MIB) for k in KINDS},
    **{f"small-{k}": Backlog(kind=k, files=50_000, size=10 * KIB) for k in KINDS},
    "growing": Growing(steps=(10_000, 50_000, 200_000)),
    "listing": Listing(objects=1_000_000),
}

QUICK: Final[Mapping[str, Case]] = {
    **{f"large-{k}": Backlog(kind=k, files=20, size=10 * MIB) for k in KINDS},
    **{f"small-{k}": Backlog(kind=k, files=1000, size=10 * KIB) for k in KINDS},
    "growing": Growing(steps=(1000, 10_000), times=3),
    "listing": Listing(objects=100_000),
}
