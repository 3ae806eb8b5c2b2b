"""A driver whose report does not change for three heartbeats is silent, by the operator's own clock."""

from dataclasses import replace

from balanced_source_operator.controller.liveness import ALIVE, Liveness
from support.builders import make_report

REPORT = make_report(incarnation=2, sequence=5)


def test_a_driver_is_silent_when_its_report_does_not_change() -> None:
    seen = Liveness().looked(REPORT, now=100.0)
    assert not seen.is_silent(now=100.0 + ALIVE - 1)
    assert seen.pause(now=110.0) == ALIVE - 10

    again = seen.looked(REPORT, now=120.0)
    assert again.is_silent(now=100.0 + ALIVE)
    assert again.pause(now=100.0 + ALIVE) is None


def test_a_heartbeat_or_another_driver_is_a_sign_of_life() -> None:
    seen = Liveness().looked(REPORT, now=100.0)
    for newer in (replace(REPORT, sequence=6), replace(REPORT, incarnation=3, sequence=1)):
        assert not seen.looked(newer, now=125.0).is_silent(now=100.0 + ALIVE)


def test_nobody_is_silent_where_nobody_has_reported() -> None:
    assert not Liveness().looked(None, now=0.0).is_silent(now=1e9)
    assert Liveness().pause(now=0.0) is None
