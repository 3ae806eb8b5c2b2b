"""What the planner hooks of every half must do.

The suites of halves derive from this one.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from balanced_source.api import SplitId


@dataclass(frozen=True, slots=True, kw_only=True)
class HooksContext:
    """Of hooks under test; has what ``PlannerContext`` has, and no one listens."""

    query: Any
    settings: Callable[[], Mapping[str, Any]]
    known_settings: Callable[[], Mapping[str, Any]]
    set_problem: Callable[[Any, Any], None] = lambda _, __: None
    check_problems: Callable[[], None] = lambda: None
    send_source_event: Callable[[int, Any], bool] = lambda _, __: True


class PlannerHooksContract:
    """Base of the suites of halves.

    Attributes:
        has_stops: whether each split has a `STOP` of its own, so that no one asks for its end.
    """

    has_stops: bool = False

    def half(self) -> Any:
        """The half under test."""
        raise NotImplementedError

    def query(self) -> Any:
        """A `Query` for it, as `read_options` and the options of a user make it."""
        raise NotImplementedError

    def hooks(self) -> Any:
        """The hooks of the half, in a process without Spark.

        Override it if yours must reach a server that the test replaces.
        """
        settings = dict(self._settings())
        return self.half().hooks(
            HooksContext(
                query=self.query(), settings=lambda: settings, known_settings=lambda: settings
            )
        )

    def _settings(self) -> Mapping[str, Any]:
        """What `Source.reader_settings` returns."""
        raise NotImplementedError

    def _bounds(self) -> Mapping[SplitId, tuple[int, int]]:
        """Split → where reading begins, and the position behind its last record."""
        raise NotImplementedError

    def test_the_end_of_a_split_is_behind_its_last_record(self) -> None:
        """Planning reads up to there.

        An end that is too early holds records back, and one that is missing counts as a deleted
        split.
        """
        with self._closing() as hooks:
            for scope, behind in self._by_scope(hooks).items():
                ends = hooks.ends(scope, list(behind), {})
                if not (self.has_stops or getattr(hooks, "knows_ends", True) is False):
                    assert ends.keys() == behind.keys(), "each split that was asked for has an end"
                for split_id, end in ends.items():
                    assert type(end.end) is int, split_id
                    assert end.end >= behind[split_id], split_id

    def test_a_micro_batch_ends_between_what_is_held_and_what_is_reachable(self) -> None:
        """For each split, and for no other one.

        A query that ends by itself has ended if nothing moves, so something must.
        """
        held = {split_id: begin for split_id, (begin, _) in self._bounds().items()}
        there = {split_id: end for split_id, (_, end) in self._bounds().items()}
        with self._closing() as hooks:
            for may_wait in (True, False):
                admitted = hooks.admit(held, there, may_wait=may_wait)
                assert admitted.keys() == held.keys()
                for split_id, position in admitted.items():
                    assert type(position) is int, split_id
                    assert held[split_id] <= position <= there[split_id], split_id
            assert any(admitted[split_id] > held[split_id] for split_id in held)

    @contextmanager
    def _closing(self) -> Iterator[Any]:
        hooks = self.hooks()
        try:
            yield hooks
        finally:
            hooks.close()

    def _by_scope(self, hooks: Any) -> dict[str, dict[SplitId, int]]:
        """Scope → split → position behind its last record."""
        found: dict[str, dict[SplitId, int]] = {}
        for split_id, (_, behind) in self._bounds().items():
            scope = hooks.scope_of(split_id)
            assert isinstance(scope, str), split_id
            found.setdefault(scope, {})[split_id] = behind
        return found
