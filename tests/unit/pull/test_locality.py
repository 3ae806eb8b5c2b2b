"""Splits go to readers that are near to them first.

On the same host, then in the same zone, then anywhere.
"""

from collections.abc import Mapping

from balanced_source.api import SplitId
from balanced_source.connectors.pull.dealing import dealt
from balanced_source.coordinator import (
    CallCompleted,
    Effect,
    ExecuteCall,
    PublishAssignment,
    ReportReceived,
)
from balanced_source.coordinator import SourceCoordinator as Coordinator
from balanced_source.documents import report as report_document
from balanced_source.documents.assignment import Assignment
from balanced_source.host import ReaderHost
from balanced_source_spark.place import Whereabouts, this_place
from support.pull_source import NumberLists, Numbers


def pending(*names: str) -> Mapping[SplitId, Numbers]:
    return {("lists", name): Numbers(name=name, stop=1) for name in names}


def near(*pairs: tuple[str, int]) -> "type[Near]":
    return type("OfThisTest", (Near,), {"pairs": pairs})


class Near:
    """Whether a split is near to a reader: in one of the pairs."""

    pairs: tuple[tuple[str, int], ...] = ()

    # Called as a function
    def __new__(cls, split: Numbers, reader: int) -> bool:  # type: ignore[misc]
        return (split.name, reader) in cls.pairs


def names(given: Mapping[int, list[Numbers]]) -> dict[int, list[str]]:
    return {reader: [split.name for split in splits] for reader, splits in sorted(given.items())}


def test_without_locality_splits_are_spread_in_their_order() -> None:
    assert names(dealt(pending("a", "b", "c"), {0: 2, 1: 1})) == {0: ["a", "c"], 1: ["b"]}


def test_a_reader_gets_what_is_near_to_it_before_anything_else() -> None:
    given = dealt(pending("a", "b", "c"), {0: 1, 1: 1}, [near(("a", 1), ("c", 0))])

    assert names(given) == {0: ["c"], 1: ["a"]}


def test_the_same_host_goes_before_the_same_zone() -> None:
    """Reader 1 asks for one split: "b" is on its host, "a" in its zone only."""
    on_host, in_zone = near(("b", 1)), near(("a", 1), ("b", 1), ("b", 0))

    assert names(dealt(pending("a", "b"), {1: 1}, [on_host, in_zone])) == {1: ["b"]}
    assert names(dealt(pending("a", "b"), {0: 1, 1: 1}, [on_host, in_zone])) == {0: ["a"], 1: ["b"]}


def test_a_split_near_no_requesting_reader_goes_to_any() -> None:
    assert names(dealt(pending("a", "b"), {0: 5}, [near(("a", 1))])) == {0: ["a", "b"]}


def test_the_zone_comes_from_the_option_or_the_pod() -> None:
    assert this_place("", {"BALANCED_SOURCE_ZONE": "eu-1a"}).zone == "eu-1a"
    assert this_place("mine", {"BALANCED_SOURCE_ZONE": "eu-1a"}).zone == "mine"
    assert this_place("", {"BALANCED_SOURCE_ZONE": ""}).zone == ""
    assert this_place("", {}).host


class Scene:
    """A coordinator and a driver in each of some places; documents pass as text."""

    def __init__(self, source: NumberLists, places: Mapping[str, Whereabouts]) -> None:
        self.source, self.places = source, places
        self.assignment = Assignment(epoch=0, parallelism=0)
        self.hosts: dict[str, ReaderHost] = {}
        for name in places:
            host = ReaderHost(name=name, incarnation=1)
            self.hosts[name] = host.on_committed(host.durable)
        self.coordinator = Coordinator(source, parallelism=len(places), hosts=tuple(places))
        self._do(self.coordinator.start(now=0.0))
        for number in range(1, 9):
            self._round(number)

    def _round(self, number: int) -> None:
        for name, host in self.hosts.items():
            place = self.places[name]
            report = host.report(sequence=2 * number, location=place.host, zone=place.zone)
            if report is not None:
                text = report_document.encode(report, source="uid")
                self._do(
                    self.coordinator.handle(
                        ReportReceived(report_document.decode(text)), now=float(number)
                    )
                )
        for name, host in self.hosts.items():
            next_host, base = host.on_assignment(self.assignment).base()
            self.hosts[name] = (
                next_host if base is None else next_host.on_planned(base).on_committed(base)
            )

    def _do(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, PublishAssignment):
                self.assignment = effect.assignment
            elif isinstance(effect, ExecuteCall):
                answer = CallCompleted(effect.call_id, self.source.execute(effect.call))
                self._do(self.coordinator.handle(answer, now=0.0))

    @property
    def owners(self) -> dict[str, int]:
        return {
            str(split_id[1]): owner for split_id, owner in self.coordinator.state.owners.items()
        }


def test_requests_say_in_which_zone_a_host_is() -> None:
    """Without zones the lists would go the other way round."""
    source = NumberLists(count=2, zones=(("list-0", "eu-1b"), ("list-1", "eu-1a")))

    scene = Scene(source, {"0": Whereabouts("pod-0", "eu-1a"), "1": Whereabouts("pod-1", "eu-1b")})

    assert scene.owners == {"list-0": 1, "list-1": 0}


def test_an_unknown_zone_is_not_a_zone() -> None:
    """Kubernetes before 1.35 gives a pod no zone: such hosts take splits in their order."""
    source = NumberLists(count=2, zones=(("list-1", ""),))

    scene = Scene(source, {"0": Whereabouts("pod-0"), "1": Whereabouts("pod-1")})

    assert scene.owners == {"list-0": 0, "list-1": 1}


def test_the_same_host_is_nearer_than_the_same_zone() -> None:
    source = NumberLists(
        count=2, near=(("list-1", "pod-0"),), zones=(("list-0", "eu-1a"), ("list-1", "eu-1a"))
    )

    scene = Scene(source, {"0": Whereabouts("pod-0", "eu-1a"), "1": Whereabouts("pod-1", "eu-1a")})

    assert scene.owners == {"list-0": 1, "list-1": 0}


def test_a_report_without_a_zone_keeps_its_bytes() -> None:
    """Older operators, and golden documents, know no zone."""
    host = ReaderHost(incarnation=1)
    report = host.on_committed(host.durable).report(sequence=1)
    assert report is not None

    assert '"zone"' not in report_document.encode(report, source="uid")
