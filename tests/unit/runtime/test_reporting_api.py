"""Which refusals by the API server, and requests without an answer, are problems; for how long."""

import asyncio
import contextlib
from typing import Any

import pytest

from balanced_source.api import ProblemBoard
from balanced_source_operator.kube.port import (
    ConflictError,
    KubernetesError,
    RefusedError,
    UnknownKindError,
)
from balanced_source_operator.resources.kinds import (
    BALANCED_SOURCE,
    CONFIG_MAP,
    EVENT,
    KUBEFLOW_APPLICATION,
    POD_TEMPLATE,
    SECRET,
    SERVICE_ACCOUNT,
)
from balanced_source_operator.runtime.refusals import (
    KEEP_MESSAGE,
    NO_ANSWER_PATIENCE,
    PATIENCE,
    PROBE_TIMEOUT,
    SAME_ROW,
    ReportingApi,
)
from support import virtual_time
from support.builders import identity, source_body
from support.fake_kubernetes import FakeClient, FakeKubernetes


class Scene:
    """The API as a source sees it, and the board."""

    def __init__(self) -> None:
        self.server = FakeKubernetes(clock=virtual_time.clock)
        self.server.add(BALANCED_SOURCE, source_body())
        self.board = ProblemBoard()
        self.api = ReportingApi(self.server.client(), self.board)

    def refuse(self, words: str = "denied", *, status: int = 403, **where: Any) -> Any:
        wanted = {"kind": CONFIG_MAP, "verbs": ("get",), **where}
        return self.server.deny(RefusedError(words, status=status), **wanted)

    def silence(self, **where: Any) -> Any:
        wanted = {"kind": CONFIG_MAP, "verbs": ("get",), **where}
        return self.server.deny(KubernetesError("the API server does not answer"), **wanted)

    async def get(self, name: str = "orders-enumerator", kind: Any = CONFIG_MAP) -> list[str]:
        """Ask for an object; return what is on the board then."""
        with contextlib.suppress(KubernetesError):
            await self.api.get(kind, "default", name)
        return self.told

    async def create(self, kind: Any, name: str) -> list[str]:
        with contextlib.suppress(KubernetesError):
            await self.api.create(kind, {"metadata": identity().metadata(name)})
        return self.told

    @property
    def told(self) -> list[str]:
        return [problem.message for problem in self.board]


def test_a_refusal_is_a_problem_until_the_call_succeeds() -> None:
    async def play() -> None:
        scene = Scene()
        allow = scene.refuse()
        (told,) = await scene.get()
        assert "get ConfigMap orders-enumerator" in told
        allow()
        assert await scene.get("orders-assignment") == [told], "that is another object"
        assert await scene.get() == []

    virtual_time.run(play())


@pytest.mark.parametrize("status", [429, 500, 503])
def test_an_answer_that_may_pass_is_a_problem_if_it_lasts(status: int) -> None:
    async def play() -> None:
        scene = Scene()
        allow = scene.refuse(status=status)
        assert await scene.get() == []
        await asyncio.sleep(PATIENCE - 1)
        assert await scene.get() == []
        await asyncio.sleep(1)
        assert len(await scene.get()) == 1
        allow()
        await scene.get()

        scene.refuse(status=status)
        assert await scene.get() == [], "the time begins again"

    virtual_time.run(play())


@pytest.mark.parametrize("status", [400, 499])
def test_an_answer_that_will_not_change_is_a_problem_at_once(status: int) -> None:
    async def play() -> None:
        scene = Scene()
        scene.refuse(status=status)
        assert len(await scene.get()) == 1

    virtual_time.run(play())


def test_other_words_replace_the_message_after_a_while_only() -> None:
    async def play() -> None:
        scene = Scene()
        scene.refuse("denied, request 1")
        first = await scene.get()
        scene.refuse("denied, request 2")
        await asyncio.sleep(KEEP_MESSAGE - 1)
        assert await scene.get() == first
        await asyncio.sleep(1)
        (second,) = await scene.get()
        assert "request 2" in second
        scene.refuse("exceeded quota: pods")
        (third,) = await scene.get()
        assert "exceeded quota" in third, "another reason is told at once"

    virtual_time.run(play())


def test_a_secret_that_cannot_be_read_is_reported_by_discovery() -> None:
    async def play() -> None:
        scene = Scene()
        scene.refuse(kind=SECRET)
        assert await scene.get("kafka", SECRET) == []

    virtual_time.run(play())


@pytest.mark.parametrize("kind", [EVENT, KUBEFLOW_APPLICATION])
def test_the_next_object_with_a_generated_name_shows_whether_a_refusal_lasts(kind: Any) -> None:
    async def play() -> None:
        scene = Scene()
        allow = scene.refuse(kind=kind, verbs=("create",))
        assert len(await scene.create(kind, "orders-1")) == 1
        assert len(await scene.create(kind, "orders-2")) == 1, "it is the same problem"
        (problem,) = scene.board
        assert problem.scope == kind.kind
        allow()
        assert await scene.create(kind, "orders-3") == []

    virtual_time.run(play())


def test_a_turn_that_succeeds_ends_refusals_of_calls_that_are_not_made_any_more() -> None:
    async def play() -> None:
        scene = Scene()
        scene.refuse(kind=EVENT, verbs=("create",))
        scene.refuse(kind=BALANCED_SOURCE, verbs=("patch status",))
        scene.refuse()
        await scene.create(EVENT, "orders-1")
        await scene.get()
        with pytest.raises(RefusedError):
            await scene.api.patch_status(BALANCED_SOURCE, "default", "orders", {})
        assert {problem.scope for problem in scene.board} == {
            "Event",
            "BalancedSource/orders",
            "ConfigMap/orders-enumerator",
        }

        scene.api.turn_succeeded()
        kept = {problem.scope for problem in scene.board}
        assert kept == {"Event", "BalancedSource/orders"}, "these are written after a turn"

    virtual_time.run(play())


def test_calls_that_are_not_refused_do_what_the_api_does() -> None:
    async def play() -> None:
        scene = Scene()
        wanted = {"metadata": identity().metadata("orders-a")}
        made = await scene.api.create(CONFIG_MAP, wanted)
        assert made == await scene.api.get(CONFIG_MAP, "default", "orders-a")
        assert await scene.api.list(CONFIG_MAP, "default", selector="") == [made]
        replaced = await scene.api.replace(CONFIG_MAP, {**made, "data": {"a": "1"}})
        assert replaced["data"] == {"a": "1"}
        applied = await scene.api.apply(CONFIG_MAP, {**wanted, "data": {"b": "2"}})
        assert applied["data"] == {"a": "1", "b": "2"}
        scene.server.objections[CONFIG_MAP] = "no"
        assert await scene.api.objection(CONFIG_MAP, made) == "no"
        await scene.api.delete(CONFIG_MAP, "default", "orders-a", uid=made["metadata"]["uid"])
        assert await scene.api.get(CONFIG_MAP, "default", "orders-a") is None

        await scene.api.scale(BALANCED_SOURCE, "default", "orders", before=2, after=3)
        assert scene.server.find(BALANCED_SOURCE, "default", "orders")["spec"]["parallelism"] == 3
        assert scene.told == []

    virtual_time.run(play())


@pytest.mark.parametrize(
    ("status", "reported"), [(403, False), (500, True)], ids=["may not ask", "fails"]
)
def test_a_dry_run_that_is_not_allowed_is_no_problem(status: int, *, reported: bool) -> None:
    """The check is skipped then. One that fails for another cause cuts off the turn."""

    async def play() -> None:
        scene = Scene()
        scene.refuse(status=status, kind=POD_TEMPLATE, verbs=("check",))
        for _ in range(2):
            with pytest.raises(RefusedError):
                await scene.api.objection(
                    POD_TEMPLATE, {"metadata": identity().metadata("orders-driver")}
                )
            await asyncio.sleep(PATIENCE)
        assert bool(scene.told) is reported

    virtual_time.run(play())


class TestNoAnswer:
    def test_it_is_a_problem_if_it_lasts_until_there_is_one(self) -> None:
        async def play() -> None:
            scene = Scene()
            for _ in range(2):
                allow = scene.silence()
                assert await scene.get() == []
                await asyncio.sleep(NO_ANSWER_PATIENCE - 1)
                assert await scene.get() == []
                assert not scene.api.turn_failed(KubernetesError("no answer"))
                await asyncio.sleep(1)
                (told,) = await scene.get()
                assert "the request to get ConfigMap orders-enumerator since 2025-" in told
                assert scene.api.turn_failed(KubernetesError("no answer"))
                allow()
                assert await scene.get("orders-assignment") == [told], "that is another object"
                assert await scene.get() == []

        virtual_time.run(play())

    def test_its_message_names_the_first_attempt(self) -> None:
        async def play() -> None:
            scene = Scene()
            scene.silence()
            for _ in range(100):
                await scene.get()
                await asyncio.sleep(5)
            assert "since 2025-06-15T15:06:40Z" in scene.told[0]

        virtual_time.run(play())

    @pytest.mark.parametrize(
        ("kind", "probe"), [(CONFIG_MAP, SERVICE_ACCOUNT), (SERVICE_ACCOUNT, CONFIG_MAP)]
    )
    def test_it_does_not_count_while_another_kind_gets_none_either(
        self, kind: Any, probe: Any
    ) -> None:
        async def play() -> None:
            scene = Scene()
            scene.silence(kind=kind)
            await scene.get(kind=kind)
            await asyncio.sleep(NO_ANSWER_PATIENCE - 1)
            back = scene.silence(kind=probe)
            await scene.get(kind=kind)
            back()
            for pause in (1, 1, NO_ANSWER_PATIENCE - 2):
                await asyncio.sleep(pause)
                assert await scene.get(kind=kind) == [], "the time begins again"
            await asyncio.sleep(2)
            assert len(await scene.get(kind=kind)) == 1
            scene.silence(kind=probe)
            assert len(await scene.get(kind=kind)) == 1, "what is known stays known"

        virtual_time.run(play())

    @pytest.mark.parametrize(
        "answer", [RefusedError("no", status=403), UnknownKindError("odd"), ConflictError("odd")]
    )
    def test_a_refusal_of_another_kind_is_an_answer(self, answer: KubernetesError) -> None:
        async def play() -> None:
            scene = Scene()
            scene.silence()
            scene.server.deny(answer, kind=SERVICE_ACCOUNT, verbs=("get",))
            await scene.get()
            await asyncio.sleep(NO_ANSWER_PATIENCE)
            assert len(await scene.get()) == 1

        virtual_time.run(play())

    def test_an_api_server_that_takes_long_for_a_small_request_counts_as_away(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def play() -> None:
            scene = Scene()
            scene.silence()
            call = FakeClient._call

            async def slow(client: FakeClient, verb: str, kind: Any, *rest: Any) -> Any:
                await asyncio.sleep(2 * PROBE_TIMEOUT if kind == SERVICE_ACCOUNT else 0)
                return await call(client, verb, kind, *rest)

            monkeypatch.setattr(FakeClient, "_call", slow)
            for _ in range(20):
                begun = virtual_time.clock()
                assert await scene.get() == []
                assert virtual_time.clock() - begun == PROBE_TIMEOUT

        virtual_time.run(play())

    def test_rare_requests_do_not_add_up(self) -> None:
        """Such as events, of which there may be one in hours."""

        async def play() -> None:
            scene = Scene()
            scene.silence()
            for _ in range(5):
                assert await scene.get() == []
                await asyncio.sleep(SAME_ROW)

        virtual_time.run(play())

    def test_an_answer_of_another_kind_takes_its_place(self) -> None:
        async def play() -> None:
            scene = Scene()
            scene.silence()
            await scene.get()
            await asyncio.sleep(NO_ANSWER_PATIENCE)
            assert len(await scene.get()) == 1
            scene.refuse("denied")
            (told,) = await scene.get()
            assert "denied" in told
            scene.silence()
            assert await scene.get() == [told], "until that lasts"
            await asyncio.sleep(NO_ANSWER_PATIENCE)
            (told,) = await scene.get()
            assert "has not answered" in told
            scene.server.deny(ConflictError("odd"), kind=CONFIG_MAP, verbs=("get",))
            assert await scene.get() == []

        virtual_time.run(play())

    def test_a_turn_that_succeeds_ends_it_unless_the_request_comes_after_turns(self) -> None:
        async def play() -> None:
            scene = Scene()
            scene.silence()
            scene.silence(kind=EVENT, verbs=("create",))
            for _ in range(2):
                await scene.create(EVENT, "orders-1")
                await scene.get()
                await asyncio.sleep(NO_ANSWER_PATIENCE)
            assert len(scene.told) == 2

            scene.api.turn_succeeded()

            (told,) = scene.told
            assert "create Event" in told

        virtual_time.run(play())

    @pytest.mark.parametrize("seconds", [PATIENCE - 1, PATIENCE])
    def test_other_errors_that_cut_off_turns_are_a_problem_if_they_last(
        self, seconds: float
    ) -> None:
        async def play() -> None:
            scene = Scene()
            error = ConflictError("roles orders: the webhook says no.")
            assert not scene.api.turn_failed(error)
            await asyncio.sleep(seconds)
            assert scene.api.turn_failed(error) == (seconds == PATIENCE) == bool(scene.told)
            scene.api.turn_succeeded()
            assert scene.told == []
            assert not scene.api.turn_failed(error)

        virtual_time.run(play())
