"""Reads YAML from users: bounded, as Kubernetes reads it, and with errors of one line."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import yaml

from balanced_source.names import one_line

MAX_DEPTH: Final = 64
"""Levels; a spec has fewer than twenty."""

MAX_NODES: Final = 200_000
"""Values, aliases followed: without this bound, ten lines of aliases become gigabytes."""

_BASE: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TIMESTAMP: Final = "tag:yaml.org,2002:timestamp"


class _Loader(_BASE):  # type: ignore[misc]
    """The safe loader, without dates: Kubernetes reads them as text."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != _TIMESTAMP]
    for first, resolvers in _BASE.yaml_implicit_resolvers.items()
}


class Place(NamedTuple):
    """A position in a text, counted from 1."""

    line: int
    column: int


class YamlError(ValueError):
    """The text is not YAML that is accepted; says why, in one line.

    Attributes:
        place: where in the text; its beginning if the parser does not say.
    """

    def __init__(self, message: str, place: Place = Place(1, 1)) -> None:  # noqa: B008 - a constant
        super().__init__(message)
        self.place = place


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """One document of a YAML text.

    Attributes:
        value: what the document holds.
        root: the parsed nodes, for positions.
    """

    value: Any
    root: yaml.Node

    def place(self, path: Sequence[str | int]) -> Place:
        """Return the position of a value, or of the closest value around it that is present."""
        node = self.root
        at = node
        for step in path:
            found = _below(node, step)
            if found is None:
                break
            at, node = found
        return _place(at.start_mark)

    def duplicates(self) -> Iterator[tuple[str, Place]]:
        """Yield each key that occurs twice in its map. Only the last one counts."""
        seen: set[int] = set()
        waiting = [self.root]
        while waiting:
            node = waiting.pop()
            if id(node) not in seen:
                seen.add(id(node))
                yield from _repeated(node)
                waiting.extend(_children(node))


def load(text: str) -> Any:
    """Returns the value of a YAML or JSON text.

    Raises:
        YamlError: it is malformed, too deep, or too large once its aliases are followed.
    """
    found = load_all(text)
    if len(found) > 1:
        raise YamlError(f"it is not valid YAML: expected one document, found {len(found)}")
    return found[0].value if found else None


def load_all(text: str) -> list[Located]:
    """Return the documents of a YAML or JSON text.

    Raises:
        YamlError: it is malformed, too deep, or too large once its aliases are followed.
    """
    try:
        _check(text)
        return list(_documents(text))
    except YamlError:
        raise
    except (
        yaml.YAMLError,
        ValueError,
        TypeError,
        ArithmeticError,
        AttributeError,
        RecursionError,
    ) as error:
        raise _in_words(error) from error


def _in_words(error: Exception) -> YamlError:
    if not isinstance(error, yaml.MarkedYAMLError):
        return YamlError(f"it is not valid YAML: {one_line(str(error))}")
    words = ": ".join(filter(None, (error.context, error.problem)))
    mark = error.problem_mark
    return YamlError(f"it is not valid YAML: {one_line(words)}", *([_place(mark)] if mark else []))


def _place(mark: Any) -> Place:
    return Place(mark.line + 1, mark.column + 1)


def _documents(text: str) -> Iterator[Located]:
    loader = _Loader(text)
    try:
        while loader.check_node():
            root = loader.get_node()
            yield Located(root=root, value=_like_json(loader.construct_document(root)))
    finally:
        loader.dispose()


def _like_json(value: Any) -> Any:
    """Keys of JSON are text, so Kubernetes reads `0: 23` as `"0": 23`."""
    if isinstance(value, dict):
        return {_key(key): _like_json(item) for key, item in value.items()}
    return [_like_json(item) for item in value] if isinstance(value, list) else value


def _key(key: Any) -> Any:
    if isinstance(key, bool):
        return str(key).lower()
    return str(key) if isinstance(key, int) else key


def _below(node: yaml.Node, step: str | int) -> tuple[yaml.Node, yaml.Node] | None:
    """Return where a child begins (at its key), and the child."""
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step], node.value[step]
    if isinstance(node, yaml.MappingNode):
        return next(
            ((key, value) for key, value in reversed(node.value) if key.value == str(step)), None
        )
    return None


def _repeated(node: yaml.Node) -> Iterator[tuple[str, Place]]:
    if not isinstance(node, yaml.MappingNode):
        return
    keys: set[str] = set()
    for key, _ in node.value:
        if isinstance(key, yaml.ScalarNode) and key.value in keys and key.value != "<<":
            yield str(key.value), _place(key.start_mark)
        keys.add(str(key.value))


def _children(node: yaml.Node) -> list[yaml.Node]:
    match node:
        case yaml.MappingNode():
            return [value for _, value in node.value]
        case yaml.SequenceNode():
            return list(node.value)
        case _:
            return []


def _check(text: str) -> None:
    """Counts nodes as they will be when aliases are followed."""
    sizes: dict[str, int] = {}
    open_: list[tuple[str | None, int]] = [(None, 0)]
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            open_.append((event.anchor, 0))
        elif isinstance(event, yaml.NodeEvent | yaml.CollectionEndEvent):
            anchor, size = _node(event, open_, sizes)
            if anchor is not None:
                sizes[anchor] = size
            above, known = open_.pop()
            open_.append((above, known + size))
        if len(open_) > MAX_DEPTH:
            raise YamlError(f"it has more than {MAX_DEPTH} levels", _place(event.start_mark))
        if open_[-1][1] > MAX_NODES:
            raise YamlError(f"it has more than {MAX_NODES} values", _place(event.start_mark))


def _node(
    event: Any, open_: list[tuple[str | None, int]], sizes: dict[str, int]
) -> tuple[str | None, int]:
    """Anchor and size of a node that has just ended."""
    if isinstance(event, yaml.CollectionEndEvent):
        anchor, size = open_.pop()
        return anchor, size + 1
    if isinstance(event, yaml.AliasEvent):
        return None, sizes.get(str(event.anchor), 1)
    return event.anchor, 1
