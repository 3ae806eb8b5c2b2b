"""When a running application may be restarted for changed settings, and what is said until then."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from balanced_source.errors import InvalidSpecError
from balanced_source_operator.controller.application import decide
from balanced_source_operator.controller.decisions import Deadlines, Decision, Sightings, Wanted
from balanced_source_operator.controller.restarts import after_hosts, hold_by_policy, next_begin
from balanced_source_operator.resources.kinds import (
    HASH_ANNOTATION,
    NONCE_ANNOTATION,
    SECRETS_ANNOTATION,
    SETTINGS_ANNOTATION,
)
from balanced_source_operator.resources.made_from import Settings, annotation_text, settings_of
from balanced_source_operator.spec import Application
from balanced_source_operator.spec.restarts import ApplicationRestart
from support.builders import driver_pod, make_spec, spark_application, spec_json

SATURDAY = datetime(2026, 1, 3, 12, 0, tzinfo=UTC)
WINDOW = {"policy": "Window", "window": {"days": ["Sat"], "start": "22:00", "duration": "4h"}}
DEADLINES = Deadlines(stuck_after=300, retry_failed_after=30)


def restart(**fields: Any) -> ApplicationRestart:
    return ApplicationRestart.model_validate(fields)


def settings(*, conf: Mapping[str, str] = {"spark.x": "1"}, **application: Any) -> Settings:
    raw = {**spec_json()["application"], **application}
    return settings_of(Application.model_validate(raw), conf=conf, uid="u")


def decided(
    application: dict[str, Any], *, asks: ApplicationRestart, at: datetime = SATURDAY, **more: Any
) -> Decision:
    now = at.timestamp()
    wanted = Wanted(
        base="orders",
        may_start=True,
        nonce=asks.nonce,
        hold=hold_by_policy(asks, now=now),
        **{"spec_hash": "2-new", "settings": settings(image="spark:2"), **more},
    )
    seen = Sightings().looked([application], now=now)
    return decide(wanted, [application], [driver_pod()], seen=seen, deadlines=DEADLINES, now=now)


def running(state: str = "RUNNING", **annotations: str) -> dict[str, Any]:
    made = spark_application(state=state)
    made["metadata"]["annotations"] = {
        HASH_ANNOTATION: "2-old",
        SETTINGS_ANNOTATION: annotation_text(settings(image="spark:1")),
        **annotations,
    }
    return made


@pytest.mark.parametrize(
    ("asks", "reason"),
    [
        (restart(), ""),
        (restart(policy="OnNonce"), "WaitingForNonce"),
        (restart(policy="OnNonce", nonce=3), "WaitingForNonce"),
        (restart(policy="OnNonce", nonce=4), ""),
        (restart(**WINDOW), "WaitingForWindow"),
        (restart(**WINDOW, nonce=4), ""),
    ],
)
def test_a_change_waits_for_what_the_policy_says(asks: ApplicationRestart, reason: str) -> None:
    application = running(**{NONCE_ANNOTATION: "3"})
    decision = decided(application, asks=asks)

    assert (decision.pending.reason if decision.pending else "") == reason
    assert len(decision.delete) == (0 if reason else 1)
    assert decision.is_restart is not bool(reason)
    if decision.pending is not None:
        assert decision.pending.message.startswith(
            "settings of the application changed (image: 'spark:1' → 'spark:2'). orders-1 has not"
            " been restarted yet."
        )
        assert (decision.state.value, decision.reason) == ("Running", ""), "nothing is under way"


def test_the_window_opens_at_the_time_that_the_condition_names() -> None:
    decision = decided(running(), asks=restart(**WINDOW))

    assert decision.pending is not None
    assert "begins at 2026-01-03T22:00Z" in decision.pending.message
    assert decision.look_again == 10 * 3600
    assert decided(running(), asks=restart(**WINDOW), at=SATURDAY.replace(hour=22)).delete


def test_a_new_nonce_restarts_also_without_another_change() -> None:
    same = {"spec_hash": "2-old"}

    assert decided(running(), asks=restart(), **same).delete == ()
    asked = decided(running(), asks=restart(nonce=1), **same)
    assert len(asked.delete) == 1
    assert asked.message.startswith("spec.application.restart.nonce changed: orders-1 is stopped")
    assert decided(running(**{NONCE_ANNOTATION: "1"}), asks=restart(nonce=1), **same).delete == ()
    assert decided(running(**{NONCE_ANNOTATION: "1"}), asks=restart(), **same).delete == (), (
        "removing it asks nothing"
    )


def test_a_secret_that_has_to_be_mounted_waits_like_a_changed_setting() -> None:
    decision = decided(
        running(**{SECRETS_ANNOTATION: "a"}),
        asks=restart(policy="OnNonce"),
        spec_hash="2-old",
        secrets=("a", "b"),
    )

    assert decision.pending is not None
    assert decision.pending.message.startswith("Secret b has to be mounted")


@pytest.mark.parametrize("state", ["FAILED", "PENDING_RERUN", "SUBMISSION_FAILED", "", "COMPLETED"])
def test_an_application_that_does_not_run_is_replaced_at_once(state: str) -> None:
    decision = decided(running(state), asks=restart(policy="OnNonce"))

    assert len(decision.delete) == 1
    assert not decision.is_restart, "a restart of what does not run is not counted"


def test_other_sources_and_other_hosts_come_first_whatever_a_nonce_says() -> None:
    crowded = decided(running(), asks=restart(nonce=1), is_crowded=True)
    hosts = after_hosts(("1",), broken=())
    turn = decided(running(), asks=restart(nonce=1), turn=hosts, is_crowded=True)

    assert crowded.pending is not None
    assert turn.pending is not None
    assert (crowded.pending.reason, crowded.delete) == ("WaitingForOtherSources", ())
    assert (turn.pending.reason, turn.reason) == ("ReplacingApplication", "ReplacingApplication")


@pytest.mark.parametrize(
    ("days", "start", "duration", "at", "begin"),
    [
        (None, "22:00", "2h", "2026-01-03T12:00", "2026-01-03T22:00"),
        (None, "22:00", "2h", "2026-01-03T22:00", "2026-01-03T22:00"),
        (None, "22:00", "2h", "2026-01-03T23:59", "2026-01-03T22:00"),
        (None, "22:00", "2h", "2026-01-04T00:00", "2026-01-04T22:00"),
        (["Sat"], "22:00", "4h", "2026-01-04T01:59", "2026-01-03T22:00"),
        (["Sat"], "22:00", "4h", "2026-01-04T02:00", "2026-01-10T22:00"),
        (["Sun", "Mon"], "00:00", "1m", "2026-01-03T12:00", "2026-01-04T00:00"),
        (["Fri"], "12:00", "24h", "2026-01-03T11:59", "2026-01-02T12:00"),
        (["Fri"], "12:00", "24h", "2026-01-03T12:00", "2026-01-09T12:00"),
    ],
)
def test_a_window_begins_on_its_days_and_may_end_on_the_next(
    days: list[str] | None, start: str, duration: str, at: str, begin: str
) -> None:
    fields = {"start": start, "duration": duration, **({"days": days} if days else {})}
    window = restart(policy="Window", window=fields).window

    assert window is not None
    assert next_begin(window, datetime.fromisoformat(f"{at}Z")) == datetime.fromisoformat(
        f"{begin}Z"
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"policy": "Window"},
        {"policy": "OnNonce", "window": WINDOW["window"]},
        {"window": WINDOW["window"]},
        {"policy": "Never"},
        {"nonce": -1},
        {"nonce": 2**31},
        {"policy": "Window", "window": {"start": "24:00", "duration": "1h"}},
        {"policy": "Window", "window": {"start": "7:00", "duration": "1h"}},
        {"policy": "Window", "window": {"start": "07:00", "duration": "59s"}},
        {"policy": "Window", "window": {"start": "07:00", "duration": "25h"}},
        {"policy": "Window", "window": {"start": "07:00", "duration": "1h", "days": []}},
        {"policy": "Window", "window": {"start": "07:00", "duration": "1h", "days": ["Monday"]}},
        {
            "policy": "Window",
            "window": {"start": "07:00", "duration": "1h", "timeZone": "Europe/Berlin"},
        },
        {"policy": "Window", "window": {"start": "07:00"}},
    ],
)
def test_invalid_values_are_rejected(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidSpecError, match=r"spec\.application\.restart"):
        make_spec(application={**spec_json()["application"], "restart": fields})


def test_the_policy_itself_restarts_nothing() -> None:
    plain, policy = settings(), settings(restart={"policy": "OnNonce", "nonce": 3})

    assert plain == policy


HIDDEN = {
    "arguments": ["-p", "hunter2"],
    "driver": {
        "template": {
            "spec": {"containers": [{"name": "c", "env": [{"name": "P", "value": "hunter2"}]}]}
        }
    },
}
LOGIN = {"spark.url": "jdbc:x://user:hunter2@host/db"}


def test_no_secret_is_in_the_annotation_or_in_the_condition() -> None:
    hidden = settings(**HIDDEN, image="spark:2", conf=LOGIN)
    assert "hunter2" not in annotation_text(hidden)
    application = running(**{SETTINGS_ANNOTATION: annotation_text(hidden)})

    decision = decided(application, asks=restart(policy="OnNonce"), settings=settings())

    assert decision.pending is not None
    assert "hunter2" not in decision.pending.message
    for words in (
        "arguments changed",
        "driver.template changed",
        "chart: spark.url changed",
        "image: 'spark:2' → ",
    ):
        assert words in decision.pending.message


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ({}, {"driver": {"memory": "2g"}}, "driver.memory: (default) → '2g'"),
        ({"columns": 1}, {}, "columns: '1' → (default)"),
        (
            {"sparkConf": {"spark.a": "1"}},
            {"sparkConf": {"spark.a": "2"}},
            "sparkConf.spark.a: '1' → '2'",
        ),
        ({"a": "1", "b": "1", "c": "1", "d": "1", "e": "1", "f": "1"}, {}, "and 1 more"),
    ],
)
def test_a_change_is_named_by_its_place_with_both_values(
    before: Any, after: Any, words: str
) -> None:
    def flat(part: Any) -> dict[str, Any]:
        return {
            f"{k}.{n}": v for k, d in part.items() if isinstance(d, dict) for n, v in d.items()
        } | {k: str(d) for k, d in part.items() if not isinstance(d, dict)}

    application = running(**{SETTINGS_ANNOTATION: json.dumps(flat(before))})
    decision = decided(application, asks=restart(policy="OnNonce"), settings=flat(after))

    assert decision.pending is not None
    assert words in decision.pending.message


@pytest.mark.parametrize("text", ["", "{", "[]", "7", "null"])
def test_changes_of_an_earlier_releases_application_are_found_in_its_own_fields(
    text: str,
) -> None:
    application = {**running(**{SETTINGS_ANNOTATION: text}), "spec": {"image": "spark:0"}}
    asks = restart(policy="OnNonce")

    decision = decided(application, asks=asks)
    assert decision.pending is not None
    assert "(image: 'spark:0' → 'spark:2')" in decision.pending.message

    other = decided({**application, "spec": {"image": "spark:2"}}, asks=asks)
    assert other.pending is not None
    assert "(what changed is not recorded in this application)" in other.pending.message
