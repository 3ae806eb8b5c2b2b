"""The driver's log has a line per micro-batch, and the query of a source with an end is ended."""

import json
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from balanced_source.documents.stream_offset import FINISHED
from balanced_source_spark import progress as module
from balanced_source_spark.progress import ProgressLogger, StopWhenFinished, stop_when_finished


def logged(capsys: pytest.CaptureFixture[str], *sources: tuple[Any, Any]) -> dict[str, Any]:
    """Return the line of a micro-batch whose sources have these end offsets and figures."""
    progress: Any = SimpleNamespace(
        batchId=7,
        timestamp="2026-01-31T12:00:00Z",
        numInputRows=3,
        durationMs={"addBatch": 5},
        sources=[SimpleNamespace(endOffset=end, latestOffset=latest) for end, latest in sources],
    )
    event: Any = SimpleNamespace(progress=progress)
    ProgressLogger().onQueryProgress(event)
    (line,) = capsys.readouterr().out.splitlines()
    found: dict[str, Any] = json.loads(line)
    return found


def test_a_micro_batch_is_logged_with_what_it_has_left(capsys: pytest.CaptureFixture[str]) -> None:
    end = json.dumps({"epoch": 4, "parallelism": 2, "positions": []})

    assert logged(capsys, (end, json.dumps({"lag": 12})), (end, json.dumps({"lag": None}))) == {
        "event": "batch",
        "batch": 7,
        "at": "2026-01-31T12:00:00Z",
        "rows": 3,
        "durations": {"addBatch": 5},
        "sources": [
            {"epoch": 4, "parallelism": 2, "lag": 12},
            {"epoch": 4, "parallelism": 2},
        ],
    }


@pytest.mark.parametrize("end", [None, "", "null", "7", "{", "[]"])
def test_nothing_is_said_of_a_source_without_an_offset_of_ours(
    end: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """A query may read other sources as well."""
    assert logged(capsys, (end, json.dumps({"lag": 12})))["sources"] == [{}]


def test_an_unknown_lag_is_not_0(capsys: pytest.CaptureFixture[str]) -> None:
    end = json.dumps({"epoch": 4, "parallelism": 2})

    (source,) = logged(capsys, (end, None))["sources"]
    assert "lag" not in source


def test_the_beginning_and_the_end_of_a_query_are_logged(
    capsys: pytest.CaptureFixture[str],
) -> None:
    started: Any = SimpleNamespace(id="q", runId="r", timestamp="2026-01-31T12:00:00Z")
    ended: Any = SimpleNamespace(id="q", exception="no")

    ProgressLogger().onQueryStarted(started)
    ProgressLogger().onQueryTerminated(ended)

    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [
        {"event": "query started", "query": "q", "run": "r", "at": "2026-01-31T12:00:00Z"},
        {"event": "query terminated", "query": "q", "error": "no"},
    ]


READ, UNREAD = json.dumps({FINISHED: True}), json.dumps({FINISHED: False})


class Stops:
    """What ends the query: notes the threads that called it."""

    def __init__(self) -> None:
        self.threads: list[threading.Thread] = []

    def __call__(self) -> None:
        self.threads.append(threading.current_thread())

    @property
    def count(self) -> int:
        """How often it was called, after all threads that were to call it."""
        for thread in threading.enumerate():
            if thread.name == "bsrc-finished":
                thread.join(10)
        return len(self.threads)


def ended(*ends: str, query_id: str = "q") -> Any:
    """Return the progress of a micro-batch whose sources end there."""
    return SimpleNamespace(id=query_id, sources=[SimpleNamespace(endOffset=end) for end in ends])


def test_a_query_whose_sources_are_all_read_is_ended_once_in_another_thread() -> None:
    """A listener must not wait for the query that it listens to."""
    stops = Stops()
    listener = StopWhenFinished(stops, query_id="q")

    for _ in range(2):
        listener.onQueryProgress(SimpleNamespace(progress=ended(READ, READ)))  # type: ignore[arg-type]

    assert stops.count == 1
    (thread,) = stops.threads
    assert thread is not threading.current_thread()
    assert thread.daemon, "a stop that hangs would keep the driver"


@pytest.mark.parametrize(
    "progress",
    [
        ended(),
        ended(UNREAD),
        ended(READ, UNREAD),
        ended(UNREAD, READ),
        ended(READ, query_id="another"),
    ],
    ids=["no source", "unread", "one is unread", "the first is unread", "another query"],
)
def test_any_other_query_runs_on(progress: Any) -> None:
    stops = Stops()

    StopWhenFinished(stops, query_id="q").look(progress)

    assert stops.count == 0


class Session:
    """Spark's session, or that of Spark Connect."""

    def __init__(self, context: object = "context", java: object = None) -> None:
        self.sparkContext, self.java = context, java
        self.listeners: list[StopWhenFinished] = []
        self.streams = SimpleNamespace(addListener=self.listeners.append)


class Sessions(Session):
    """The class of sessions: the active one, and those that were made."""

    of_this_thread = Session()
    made: list[Session]

    @classmethod
    def active(cls) -> Session:
        return cls.of_this_thread

    def __init__(self, context: object, java: object) -> None:
        super().__init__(context, java)
        self.made.append(self)


@pytest.fixture
def sessions(monkeypatch: pytest.MonkeyPatch) -> type[Sessions]:
    monkeypatch.setattr(Sessions, "of_this_thread", Session())
    monkeypatch.setattr(Sessions, "made", [], raising=False)
    monkeypatch.setattr(module, "SparkSession", Sessions)
    return Sessions


def test_the_session_that_started_the_query_is_listened_to(sessions: type[Sessions]) -> None:
    """Another session of the driver does not hear of its progress."""
    java = SimpleNamespace(sparkSession=lambda: "its session")
    stops = Stops()
    query: Any = SimpleNamespace(id="q", _jsq=java, lastProgress=None, stop=stops)

    stop_when_finished(query)

    (session,) = sessions.made
    assert (session.sparkContext, session.java) == ("context", "its session")
    (listener,) = session.listeners
    assert (sessions.of_this_thread.listeners, stops.count) == ([], 0)
    listener.look(ended(READ))
    assert stops.count == 1


@pytest.mark.usefixtures("sessions")
def test_a_query_that_was_read_before_anyone_listened_is_ended() -> None:
    java = SimpleNamespace(sparkSession=lambda: "its session")
    own, given = Stops(), Stops()
    query: Any = SimpleNamespace(id="q", _jsq=java, lastProgress=ended(READ), stop=own)

    stop_when_finished(query, given)

    assert (given.count, own.count) == (1, 0)


def test_spark_connect_has_one_session(sessions: type[Sessions]) -> None:
    query: Any = SimpleNamespace(id="q", lastProgress=None, stop=Stops())

    stop_when_finished(query)

    assert (len(sessions.of_this_thread.listeners), sessions.made) == (1, [])
