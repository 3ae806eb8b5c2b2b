"""Queries: selectors that never forget their filters, and the shapes that panels share."""

from typing import Final, NamedTuple

RATE: Final = "[$__rate_interval]"
RANGE: Final = "[$__range]"

PER_SOURCE: Final = "namespace, source"
"""Labels of one source."""


class Selector(NamedTuple):
    """Series of one kind.

    Attributes:
        prefix: of the names of their metrics.
        filters: label matchers that each of them gets.
    """

    prefix: str
    filters: tuple[str, ...] = ()

    def __call__(self, metric: str, *matchers: str) -> str:
        """Return the selector of a metric, with further label matchers."""
        labels = ", ".join((*self.filters, *matchers))
        return f"{self.prefix}{metric}{{{labels}}}" if labels else f"{self.prefix}{metric}"


OPERATOR: Final = Selector("balanced_source_")
"""Metrics of the operator that are not about a source."""

SOURCES: Final = Selector("balanced_source_", ('namespace=~"$namespace"',))
"""Metrics of the operator about the chosen namespaces' sources."""

SOURCE: Final = Selector("balanced_source_", ('namespace="$namespace"', 'source="$source"'))
"""Metrics of the operator about the chosen source."""

DRIVER: Final = Selector("balanced_source_host_", ('namespace=~"$namespace|"', 'source="$source"'))
"""Metrics of the chosen source's drivers. Those of older images have no namespace of their own, so
that series without one are taken too."""


def of_source(metric: str, *matchers: str) -> str:
    """Return the value of a metric of the chosen source, whichever replica serves it."""
    return f"max({SOURCE(metric, *matchers)})"


def each(selector: str, by: str = PER_SOURCE) -> str:
    """Return one series per source, or per value of other labels.

    A replica of the operator that has just ended, and a second Prometheus, leave copies behind.
    """
    return f"max by ({by}) ({selector})"


def top(selector: str, function: str = "max_over_time") -> str:
    """Return the series of the sources with most of something within the dashboard's time.

    The choice is made once, at the end of that time: `topk` alone chooses again at each point,
    and tears the lines of all sources apart.
    """
    return f"{each(selector)} and {_choice(each(f'{function}({selector}{RANGE} @ end())'))}"


def top_of(function: str, selector: str, window: str) -> str:
    """Return the same of a function over a window, such as a growth."""
    within = each(f"{function}({selector}[{window}])")
    return f"{within} and {_choice(each(f'{function}({selector}{RANGE} @ end())'))}"


def _choice(values: str) -> str:
    return f"topk($top, {values})"


def where(condition: str, value: int, *matchers: str) -> str:
    """Return the sources of which a condition has a value (1: True, 0: False)."""
    of_type = SOURCES("condition", f'type="{condition}"', *matchers)
    return f"{each(of_type)} == {value}"


ALL_SOURCES: Final = each(SOURCES("condition", 'type="Ready"'))


def counted(sources: str) -> str:
    """Return the number of sources: 0 only while the operator reports any, and else unknown."""
    return f"count({sources}) or 0 * count({ALL_SOURCES})"
