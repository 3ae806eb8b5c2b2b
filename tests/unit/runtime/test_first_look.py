"""How long an operator that has just begun does not know whether all is well."""

from typing import Any, cast

from balanced_source.coordinator import SourceCoordinator
from balanced_source_operator.runtime.first_look import LONGEST, FirstLook


class FakeEnumerator:
    """Settled when it is told."""

    def __init__(self) -> None:
        self.has_settled = False

    def is_settled(self) -> bool:
        return self.has_settled


class FakeCoordinator:
    def __init__(self) -> None:
        self.enumerator = FakeEnumerator()


class Scene:
    def __init__(self) -> None:
        self.look = FirstLook()
        self.coordinator = FakeCoordinator()

    def lasts(self, now: float, *, has_problems: bool = False) -> bool:
        coordinator = cast("SourceCoordinator[Any, Any]", self.coordinator)
        return self.look.lasts(coordinator, has_problems=has_problems, now=now)


def test_it_lasts_until_everything_has_answered_and_is_over_then() -> None:
    scene = Scene()

    assert scene.lasts(100.0)
    scene.coordinator.enumerator.has_settled = True
    assert not scene.lasts(101.0)
    scene.coordinator.enumerator.has_settled = False
    assert not scene.lasts(102.0)


def test_a_problem_ends_it() -> None:
    scene = Scene()

    assert not scene.lasts(100.0, has_problems=True)
    assert not scene.lasts(101.0)


def test_it_is_over_after_a_while_in_any_case() -> None:
    scene = Scene()

    assert scene.look.pause(100.0) is None
    assert scene.lasts(100.0)
    assert scene.look.pause(130.0) == LONGEST - 30
    assert not scene.lasts(100.0 + LONGEST)
    assert scene.look.pause(100.0 + LONGEST) is None


def test_another_coordinator_knows_nothing_again() -> None:
    scene = Scene()
    assert not scene.lasts(100.0, has_problems=True)

    scene.coordinator = FakeCoordinator()

    assert scene.lasts(200.0)


def test_without_a_coordinator_nothing_is_known() -> None:
    assert FirstLook().lasts(None, has_problems=False, now=100.0)
