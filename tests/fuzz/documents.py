"""Stored documents.

Torn, edited, of other versions, and written by someone who knows how the digest is made.
"""

import base64
import bz2
import dataclasses
import json
from collections.abc import Mapping
from typing import Any, Final

from hypothesis import strategies as st

from balanced_source.coordinator import ReportReceived, SourceCoordinator
from balanced_source.documents import envelope, parts, storage
from balanced_source.documents.storage import Blob
from balanced_source.host.machine import ReaderHost
from fuzz.judge import Judge
from fuzz.values import broken
from support.golden import FORMATS, SOURCE
from support.golden_files import FOLDER, digests

FILES: Final = [
    name for name in digests() if name.endswith(".json") and not name.startswith("packed")
]
KINDS: Final = sorted(FORMATS, key=len, reverse=True)


def kind_of(name: str) -> str:
    """Returns the format of a golden file."""
    return next((kind for kind in KINDS if name.startswith(kind)), "assignment")


TEXTS: Final = [
    (kind_of(name), (FOLDER / name).read_text(encoding="utf-8").strip()) for name in FILES
]


@st.composite
def torn(draw: st.DrawFn) -> tuple[str, str]:
    """Draws a document with a part cut out, or with other characters."""
    kind, text = draw(st.sampled_from(TEXTS))
    start = draw(st.integers(0, len(text)))
    end = draw(st.integers(start, min(len(text), start + 40)))
    return kind, text[:start] + draw(st.text(max_size=8)) + text[end:]


@st.composite
def resealed(draw: st.DrawFn) -> tuple[str, str]:
    """Draws a document with other content and a digest that fits."""
    kind, text = draw(st.sampled_from(TEXTS))
    content = draw(broken((json.loads(text),)))
    if kind == "stream-offset" or not isinstance(content, dict):
        return kind, json.dumps(content)
    content.pop("digest", None)
    return kind, envelope.canonical({**content, "digest": envelope.digest(content)})


packed = st.binary(max_size=40) | st.text(max_size=40).map(lambda text: bz2.compress(text.encode()))
blobs: Final = st.builds(
    Blob,
    data=st.dictionaries(
        st.sampled_from((storage.PLAIN_KEY, parts.PARTS_KEY, "x")),
        st.text(max_size=30) | broken(([[0, "a"], [1, "b"]],)).map(json.dumps),
        max_size=2,
    ),
    binary=st.dictionaries(
        st.sampled_from((storage.PACKED_KEY, storage.FORMER_PACKED_KEY, parts.PART_KEY)),
        packed.map(lambda raw: base64.b64encode(raw).decode()) | st.text(max_size=30),
        max_size=2,
    ),
)
cases: Final = torn() | resealed() | resealed() | st.lists(blobs, min_size=1, max_size=3)


def check(case: Any, judge: Judge) -> None:
    """Decodes, and hands what could be decoded to who uses it."""
    if isinstance(case, list):
        judge.try_(lambda: parts.assemble(case[0], _padded(case)), repr(case))
        return
    kind, text = case
    if not _can_arrive(kind, text):
        return
    value = judge.try_(lambda: FORMATS[kind].decode(text), text)
    if value is not None:
        judge.try_(lambda: _used(kind, value), text)


def _ids(value: Any) -> set[Any]:
    """All split ids in a value."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            split_id
            for field in dataclasses.fields(value)
            for split_id in _ids(getattr(value, field.name))
        }
    if isinstance(value, Mapping):
        own = {key for key in value if isinstance(key, tuple)}
        return own.union(*(_ids(inner) for inner in value.values()))
    if isinstance(value, frozenset):
        return {key for key in value if isinstance(key, tuple)}
    return set().union(*(_ids(inner) for inner in value)) if isinstance(value, tuple) else set()


def _is_partition(split_id: Any) -> bool:
    is_id = len(split_id) == len(("cluster", "topic", 0))
    return (
        is_id
        and isinstance(split_id[0], str)
        and isinstance(split_id[1], str)
        and type(split_id[2]) is int
    )


def _can_arrive(kind: str, text: str) -> bool:
    """Spark parses the text of an offset, and the values of environment variables are strings."""
    if kind not in ("stream-offset", "driver-environment"):
        return True
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    is_variables = isinstance(value, dict) and all(
        isinstance(inner, str) for inner in value.values()
    )
    return kind == "stream-offset" or is_variables


def _padded(found: list[Blob]) -> list[Blob]:
    """As many parts as the head names, as the reader of parts makes them."""
    refs = parts.parts_of(found[0])
    return [found[1] if len(found) > 1 else Blob() for _ in refs]


def _used(kind: str, value: Any) -> None:
    """Only of partitions.

    An id of another connector is found out later, by the coordinator's turn.
    """
    if not all(_is_partition(split_id) for split_id in _ids(value)):
        return
    if kind == "report":
        coordinator: SourceCoordinator[Any, Any] = SourceCoordinator(SOURCE, parallelism=2)
        coordinator.start(now=0.0)
        coordinator.handle(ReportReceived(value), now=1.0)
    elif kind.startswith("assignment"):
        ReaderHost(incarnation=1).on_assignment(value).report(sequence=1)
    elif kind == "stream-offset":
        FORMATS[kind].encode(value)
