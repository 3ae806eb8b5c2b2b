"""Reads YAML that somebody else wrote: bounded, and with errors of one line."""

from typing import Any, Final

import yaml

from balanced_source.names import shown

MAX_DEPTH: Final = 64
"""Levels; a spec has fewer than twenty."""

MAX_NODES: Final = 200_000
"""Values, aliases followed: without this bound, ten lines of aliases become gigabytes."""

_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class YamlError(ValueError):
    """The text is not YAML that is accepted; says why, in one line."""


def load(text: str) -> Any:
    """Returns the value of a YAML or JSON text.

    Raises:
        YamlError: it is malformed, too deep, or too large once its aliases are followed.
    """
    try:
        _check(text)
        return yaml.load(text, Loader=_LOADER)  # noqa: S506 - it is the safe one
    except YamlError:
        raise
    except (yaml.YAMLError, ValueError, TypeError, ArithmeticError, AttributeError, RecursionError) as error:
        raise YamlError(f"it is not valid YAML: {shown(' '.join(str(error).split()))}") from error


def _check(text: str) -> None:
    """Counts nodes as they will be when aliases are followed."""
    sizes: dict[str, int] = {}
    open_: list[tuple[str | None, int]] = [(None, 0)]
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.CollectionStartEvent):
            open_.append((event.anchor, 0))
        elif isinstance(event, yaml.NodeEvent | yaml.CollectionEndEvent):
            anchor, size = _node(event, open_, sizes)
            if anchor is not None:
                sizes[anchor] = size
            above, known = open_.pop()
            open_.append((above, known + size))
        if len(open_) > MAX_DEPTH:
            raise YamlError(f"it has more than {MAX_DEPTH} levels")
        if open_[-1][1] > MAX_NODES:
            raise YamlError(f"it has more than {MAX_NODES} values")


def _node(event: Any, open_: list[tuple[str | None, int]], sizes: dict[str, int]) -> tuple[str | None, int]:
    """Anchor and size of a node that has just ended."""
    if isinstance(event, yaml.CollectionEndEvent):
        anchor, size = open_.pop()
        return anchor, size + 1
    if isinstance(event, yaml.AliasEvent):
        return None, sizes.get(str(event.anchor), 1)
    return event.anchor, 1
