"""What the client sends to the API server and makes of its answers, without a network."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import aiohttp
import pytest

from balanced_source_operator.kube.client import REQUEST_TIMEOUT, KubernetesClient
from balanced_source_operator.kube.port import (
    ConflictError,
    KubernetesError,
    RefusedError,
    UnknownKindError,
)
from balanced_source_operator.resources.kinds import (
    APACHE_APPLICATION,
    BALANCED_SOURCE,
    CONFIG_MAP,
    LEASE,
)
from support.answering_api import AnsweringApi, ApiAnswer, refusal

Call: TypeAlias = Callable[[KubernetesClient], Awaitable[Any]]

MAPS = "/api/v1/namespaces/default/configmaps"
ORDERS = f"{MAPS}/orders"
SOURCE = "/apis/balancedsource.io/v1alpha1/namespaces/default/balancedsources/orders"
MANIFEST = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"namespace": "default", "name": "orders"},
    "data": {"a": "b"},
}
STORED = {**MANIFEST, "metadata": {**MANIFEST["metadata"], "resourceVersion": "7"}}  # type: ignore[dict-item]
STRICTLY = {"dryRun": "All", "fieldValidation": "Strict"}

GONE = refusal(404, "configmaps orders not found", name="orders", kind="configmaps")
NO_KIND = ApiAnswer(404, "404 page not found")

CALLS: dict[str, Call] = {
    "get": lambda it: it.get(CONFIG_MAP, "default", "orders"),
    "list": lambda it: it.list(CONFIG_MAP, "default", selector="a=b"),
    "create": lambda it: it.create(CONFIG_MAP, MANIFEST),
    "objection": lambda it: it.objection(CONFIG_MAP, MANIFEST),
    "dry_run": lambda it: it.dry_run(CONFIG_MAP, MANIFEST),
    "count_up": lambda it: it.count_up(BALANCED_SOURCE, "default", "orders", "nonce", most=9),
    "serves": lambda it: it.serves(BALANCED_SOURCE),
    "ask": lambda it: it.ask("GET", "/version"),
    "log": lambda it: it.log("default", "pod", "main", previous=True, tail=10, limit=99),
    "replace": lambda it: it.replace(CONFIG_MAP, MANIFEST),
    "apply": lambda it: it.apply(CONFIG_MAP, MANIFEST),
    "patch_status": lambda it: it.patch_status(BALANCED_SOURCE, "default", "orders", {"a": 1}),
    "scale": lambda it: it.scale(BALANCED_SOURCE, "default", "orders", before=2, after=3),
    "delete": lambda it: it.delete(CONFIG_MAP, "default", "orders", uid="u"),
}


def answered(call: str | Call, *answers: ApiAnswer | Exception) -> tuple[Any, AnsweringApi]:
    """Return what a call returns, and what has seen its requests."""
    library = AnsweringApi(*answers)
    client: Any = library
    method = CALLS[call] if isinstance(call, str) else call

    async def ask() -> Any:
        return await method(KubernetesClient(client))

    return asyncio.run(ask()), library


def result(call: str | Call, *answers: ApiAnswer | Exception) -> Any:
    return answered(call, *answers)[0]


def test_each_kind_of_call_is_examined_here() -> None:
    assert set(CALLS) == {name for name in vars(KubernetesClient) if not name.startswith("_")}


@pytest.mark.parametrize(
    ("call", "line", "query", "body", "content_type"),
    [
        ("get", f"GET {ORDERS}", {}, None, "application/json"),
        ("create", f"POST {MAPS}", {}, MANIFEST, "application/json"),
        ("objection", f"POST {MAPS}", STRICTLY, MANIFEST, "application/json"),
        ("ask", "GET /version", {}, None, "application/json"),
        ("replace", f"PUT {ORDERS}", {}, MANIFEST, "application/json"),
        (
            "apply",
            f"PATCH {ORDERS}",
            {"fieldManager": "balanced-source-operator", "force": "true"},
            MANIFEST,
            "application/apply-patch+yaml",
        ),
        (
            "patch_status",
            f"PATCH {SOURCE}/status",
            {},
            {"status": {"a": 1}},
            "application/merge-patch+json",
        ),
        (
            "scale",
            f"PATCH {SOURCE}/scale",
            {},
            [
                {"op": "test", "path": "/spec/replicas", "value": 2},
                {"op": "replace", "path": "/spec/replicas", "value": 3},
            ],
            "application/json-patch+json",
        ),
        (
            "delete",
            f"DELETE {ORDERS}",
            {},
            {"preconditions": {"uid": "u"}, "propagationPolicy": "Background"},
            "application/json",
        ),
    ],
)
def test_a_call_sends_one_request(
    call: str, line: str, query: dict[str, str], body: Any, content_type: str
) -> None:
    _, library = answered(call, ApiAnswer(200, STORED))
    [sent] = library.requests
    assert (sent.line, sent.query, sent.body) == (line, query, body)
    assert sent.content_type == content_type
    assert sent.accept == "application/json"
    assert sent.timeout == REQUEST_TIMEOUT


@pytest.mark.parametrize("call", ["get", "create", "ask", "replace", "apply", "patch_status"])
@pytest.mark.parametrize("status", [200, 201, 299])
def test_an_object_is_returned_as_the_api_server_has_it(call: str, status: int) -> None:
    assert result(call, ApiAnswer(status, STORED)) == STORED


@pytest.mark.parametrize("call", ["objection", "scale", "delete"])
def test_a_call_without_an_object_returns_nothing(call: str) -> None:
    assert result(call, ApiAnswer(200, STORED)) is None


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize(
    "failure", [aiohttp.ClientConnectionError("cut off"), TimeoutError(), ConnectionResetError()]
)
def test_an_api_server_that_does_not_answer_is_an_error_of_the_port(
    name: str, failure: Exception
) -> None:
    with pytest.raises(KubernetesError, match="the API server does not answer") as found:
        result(name, failure)
    assert type(failure).__name__ in str(found.value)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("status", [300, 401, 403, 500])
def test_a_refusal_tells_its_status_and_why(name: str, status: int) -> None:
    with pytest.raises(RefusedError, match="because of this") as found:
        result(name, refusal(status))
    assert found.value.status == status


@pytest.mark.parametrize("name", sorted(CALLS.keys() - {"log", "delete"}))
def test_an_answer_that_is_no_json_is_an_error_of_the_port(name: str) -> None:
    """A proxy on the way answers with a page of its own."""
    with pytest.raises(KubernetesError, match="no JSON: '<html>"):
        result(name, ApiAnswer(200, "<html>please log in</html>"))


@pytest.mark.parametrize("name", sorted(CALLS.keys() - {"ask", "serves", "list"}))
def test_a_refusal_names_the_object(name: str) -> None:
    named = {"log": "pods pod"}.get(name, "orders")
    with pytest.raises(RefusedError, match=rf"{named}: because of this"):
        result(name, refusal(403))


def test_a_refusal_of_a_list_names_the_kind() -> None:
    with pytest.raises(RefusedError, match=r"^configmaps: because of this$"):
        result("list", refusal(403))
    with pytest.raises(RefusedError, match=r"^leases\.coordination\.k8s\.io: because of this$"):
        result(lambda it: it.list(LEASE, "default", selector=""), refusal(403))


@pytest.mark.parametrize(
    "call", ["get", "list", "create", "objection", "dry_run", "count_up", "apply"]
)
def test_a_kind_that_is_not_installed_is_told_from_an_object_that_is_missing(call: str) -> None:
    with pytest.raises(UnknownKindError, match=r"the kind \S+ is not installed"):
        result(call, NO_KIND)


@pytest.mark.parametrize("answer", [ApiAnswer(404, []), refusal(404), ApiAnswer(404, "")])
def test_a_missing_object_is_named_in_the_answer(answer: ApiAnswer) -> None:
    with pytest.raises(UnknownKindError, match="the kind configmaps is not installed"):
        result("get", answer)


def test_a_missing_object_is_no_error_where_the_caller_can_deal_with_it() -> None:
    assert result("get", GONE) is None
    assert result("patch_status", GONE) is None
    assert result("delete", GONE) is None


@pytest.mark.parametrize("call", ["create", "apply", "scale", "log"])
def test_a_missing_object_is_a_refusal_elsewhere(call: str) -> None:
    with pytest.raises(RefusedError, match="not found") as found:
        result(call, GONE)
    assert found.value.status == 404


@pytest.mark.parametrize(
    "call", ["get", "list", "create", "objection", "dry_run", "count_up", "replace", "apply"]
)
def test_a_conflict_is_told_from_other_refusals(call: str) -> None:
    with pytest.raises(ConflictError, match="because of this"):
        result(call, refusal(409))


def test_who_replaces_an_object_that_is_gone_has_lost_a_race() -> None:
    with pytest.raises(ConflictError, match="ConfigMap orders is gone"):
        result("replace", GONE)


def test_items_of_a_list_get_their_kind() -> None:
    items = [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}]
    found, library = answered("list", ApiAnswer(200, {"items": items}))
    assert found == [{"apiVersion": "v1", "kind": "ConfigMap", **item} for item in items]
    [sent] = library.requests
    assert (sent.line, sent.query) == (f"GET {MAPS}", {"labelSelector": "a=b"})


@pytest.mark.parametrize("status", [400, 422])
def test_what_is_invalid_is_an_objection(status: int) -> None:
    assert result("objection", refusal(status)) == "because of this"


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (ApiAnswer(422, "no JSON"), "no JSON"),
        (ApiAnswer(422, {"code": 422}), '{"code": 422}'),
        (ApiAnswer(422, []), "[]"),
        (ApiAnswer(422, ""), "HTTP status 422"),
    ],
)
def test_an_objection_without_a_message_is_what_was_answered(answer: ApiAnswer, text: str) -> None:
    assert result("objection", answer) == text


def test_a_dry_run_of_a_new_object_would_create_it() -> None:
    found, library = answered("dry_run", GONE, ApiAnswer(201, STORED))
    assert found is None
    assert [sent.line for sent in library.requests] == [f"GET {ORDERS}", f"POST {MAPS}"]
    assert library.requests[1].query == STRICTLY
    assert result("dry_run", GONE, refusal(422)) == "because of this"


def test_a_dry_run_of_an_object_that_exists_would_replace_this_very_revision() -> None:
    found, library = answered("dry_run", ApiAnswer(200, STORED))
    assert found is None
    assert [sent.line for sent in library.requests] == [f"GET {ORDERS}", f"PUT {ORDERS}"]
    assert (library.requests[1].query, library.requests[1].body) == (STRICTLY, STORED)


@pytest.mark.parametrize("status", [400, 422])
def test_a_dry_run_of_a_replacement_returns_an_objection(status: int) -> None:
    assert result("dry_run", ApiAnswer(200, STORED), refusal(status)) == "because of this"


def test_a_dry_run_of_a_replacement_that_is_refused_is_an_error() -> None:
    with pytest.raises(RefusedError, match="configmaps orders: because of this"):
        result("dry_run", ApiAnswer(200, STORED), refusal(403))


@pytest.mark.parametrize(
    ("spec", "before", "after"), [({}, 0, 1), ({"nonce": 8}, 8, 9), ({"nonce": 9}, 9, 0)]
)
def test_a_number_counts_up_to_its_greatest_and_then_begins_at_0(
    spec: dict[str, int], before: int, after: int
) -> None:
    stored = ApiAnswer(200, {"metadata": {"resourceVersion": "7"}, "spec": spec})
    found, library = answered("count_up", stored)
    assert found == (before, after)
    read, written = library.requests
    assert (read.line, written.line) == (f"GET {SOURCE}", f"PATCH {SOURCE}")
    assert written.body == {"metadata": {"resourceVersion": "7"}, "spec": {"nonce": after}}
    assert written.content_type == "application/merge-patch+json"


def test_a_number_of_an_object_that_is_missing_does_not_count() -> None:
    with pytest.raises(
        KubernetesError, match="there is no BalancedSource 'orders' in namespace 'default'"
    ):
        result("count_up", GONE)


@pytest.mark.parametrize(("status", "error"), [(403, RefusedError), (409, ConflictError)])
def test_a_number_that_may_not_be_changed_is_an_error(status: int, error: type[Exception]) -> None:
    stored = ApiAnswer(200, {"metadata": {"resourceVersion": "7"}, "spec": {"nonce": 1}})
    with pytest.raises(error, match=r"balancedsource\.io orders: because of this"):
        result("count_up", stored, refusal(status))


GROUPS = ApiAnswer(200, {"groups": [{"name": "apps"}, {"name": "balancedsource.io"}]})


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ([{"name": "other"}, {"name": "balancedsources"}], True),
        ([{"name": "other"}, {}], False),
        ([], False),
        (None, False),
    ],
)
def test_a_kind_is_served_once_its_group_lists_it(
    resources: list[dict[str, str]] | None, expected: bool
) -> None:
    found, library = answered("serves", GROUPS, ApiAnswer(200, {"resources": resources}))
    assert found is expected
    assert [sent.line for sent in library.requests] == [
        "GET /apis",
        "GET /apis/balancedsource.io/v1alpha1",
    ]


@pytest.mark.parametrize("groups", [[{"name": "apps"}, {}], [], None])
def test_a_kind_of_a_group_that_is_not_listed_is_not_asked_for(
    groups: list[dict[str, str]] | None,
) -> None:
    found, library = answered("serves", ApiAnswer(200, {"groups": groups}))
    assert found is False
    assert len(library.requests) == 1


def test_a_kind_of_a_version_that_is_not_served_is_not_served() -> None:
    assert result("serves", GROUPS, NO_KIND) is False
    with pytest.raises(
        RefusedError, match=r"^sparkapplications\.spark\.apache\.org: because of this$"
    ):
        result(lambda it: it.serves(APACHE_APPLICATION), refusal(403))


def test_another_request_may_have_a_body() -> None:
    _, library = answered(lambda it: it.ask("POST", "/a", body={"b": 1}), ApiAnswer(200, {}))
    [sent] = library.requests
    assert (sent.line, sent.body) == ("POST /a", {"b": 1})


def test_a_log_is_text_with_the_time_of_each_line() -> None:
    found, library = answered("log", ApiAnswer(200, "2025-06-15T00:00:00Z a line\n"))
    assert found == "2025-06-15T00:00:00Z a line\n"
    [sent] = library.requests
    assert sent.line == "GET /api/v1/namespaces/default/pods/pod/log"
    assert sent.query == {
        "container": "main",
        "previous": "true",
        "tailLines": "10",
        "limitBytes": "99",
        "timestamps": "true",
    }
    assert sent.accept == "*/*"


def test_a_number_of_replicas_that_someone_has_changed_is_a_conflict() -> None:
    failed = refusal(422, "the server rejected our request due to an error in our request")
    with pytest.raises(ConflictError, match="orders: the number of replicas is not 2 any more"):
        result("scale", failed)


def test_a_number_of_replicas_that_is_invalid_is_a_refusal() -> None:
    invalid = 'BalancedSource "orders" is invalid: spec.replicas: too many'
    with pytest.raises(RefusedError, match="is invalid") as found:
        result("scale", refusal(422, invalid))
    assert found.value.status == 422
    with pytest.raises(RefusedError):
        result("scale", refusal(403))


@pytest.mark.parametrize("status", [200, 202, 404, 409])
def test_an_object_that_is_deleted_or_gone_or_another_one_is_no_failure(status: int) -> None:
    assert result("delete", refusal(status)) is None


@pytest.mark.parametrize("status", [403, 422, 500])
def test_a_deletion_that_is_refused_is_an_error(status: int) -> None:
    with pytest.raises(RefusedError, match="because of this"):
        result("delete", refusal(status))
