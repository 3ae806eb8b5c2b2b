"""What the API server says about users, without a network."""

import asyncio
from typing import Any

import aiohttp
import pytest

from balanced_source_operator.kube.port import KubernetesError
from balanced_source_operator.kube.reviews import Reviews, User
from support.answering_api import AnsweringApi, ApiAnswer, refusal

ANN = User(name="ann", uid="u-1", groups=("a", "b"), extra={"scopes": ("x", "y")})
SUBJECT = {"username": "ann", "uid": "u-1", "groups": ["a", "b"], "extra": {"scopes": ["x"]}}


def status(**status: Any) -> ApiAnswer:
    return ApiAnswer(201, {"status": status})


def user_of(answer: ApiAnswer | Exception) -> tuple[User | None, AnsweringApi]:
    library = AnsweringApi(answer)
    client: Any = library
    return asyncio.run(Reviews(client).user_of("secret-token")), library


def may_get(answer: ApiAnswer, user: User, namespace: str) -> tuple[bool, AnsweringApi]:
    library = AnsweringApi(answer)
    client: Any = library
    return asyncio.run(Reviews(client).may_get_sources(user, namespace)), library


def test_a_token_is_that_of_the_user_whom_the_api_server_names() -> None:
    found, library = user_of(status(authenticated=True, user=SUBJECT))
    assert found == User(name="ann", uid="u-1", groups=("a", "b"), extra={"scopes": ["x"]})
    [sent] = library.requests
    assert sent.line == "POST /apis/authentication.k8s.io/v1/tokenreviews"
    assert sent.body == {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "spec": {"token": "secret-token"},
    }


@pytest.mark.parametrize("extra", [{}, {"groups": None, "extra": None}])
def test_a_user_may_have_nothing_but_a_name(extra: dict[str, Any]) -> None:
    found, _ = user_of(status(authenticated=True, user={"username": "ann", **extra}))
    assert found == User(name="ann")


@pytest.mark.parametrize(
    "answer",
    [
        status(authenticated=False, user=SUBJECT),
        status(authenticated="true", user=SUBJECT),
        status(user=SUBJECT),
        status(authenticated=True),
        status(authenticated=True, user="ann"),
        status(authenticated=True, user={}),
        status(authenticated=True, user={"username": ""}),
        status(),
    ],
)
def test_a_token_that_is_not_accepted_for_certain_is_that_of_no_user(answer: ApiAnswer) -> None:
    found, _ = user_of(answer)
    assert found is None


@pytest.mark.parametrize(
    "failure", [aiohttp.ClientConnectionError("cut off"), TimeoutError("cut off")]
)
def test_a_review_that_is_not_answered_is_an_error(failure: Exception) -> None:
    with pytest.raises(KubernetesError, match=r"the API server does not answer: .*cut off"):
        user_of(failure)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (refusal(403), "does not say whose token this is: because of this"),
        (ApiAnswer(200, {"kind": "TokenReview", "message": "secret-token"}), "token this is$"),
        (ApiAnswer(200, {"status": "secret-token"}), "token this is$"),
        (ApiAnswer(200, "<html>secret-token</html>"), "token this is$"),
        (ApiAnswer(200, ["secret-token"]), "token this is$"),
    ],
)
def test_a_review_without_a_result_is_an_error_that_never_shows_the_token(
    answer: ApiAnswer, text: str
) -> None:
    with pytest.raises(KubernetesError, match=text) as found:
        user_of(answer)
    assert "secret-token" not in str(found.value)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (status(allowed=True), True),
        (status(allowed=False), False),
        (status(allowed="true"), False),
        (status(), False),
    ],
)
def test_a_user_may_see_what_the_api_server_allows_for_certain(
    answer: ApiAnswer, expected: bool
) -> None:
    found, _ = may_get(answer, ANN, "default")
    assert found is expected


@pytest.mark.parametrize("namespace", ["default", ""])
def test_a_right_is_asked_for_with_all_that_is_known_of_the_user(namespace: str) -> None:
    _, library = may_get(status(allowed=True), ANN, namespace)
    [sent] = library.requests
    assert sent.line == "POST /apis/authorization.k8s.io/v1/subjectaccessreviews"
    assert sent.body == {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": "ann",
            "uid": "u-1",
            "groups": ["a", "b"],
            "extra": {"scopes": ["x", "y"]},
            "resourceAttributes": {
                "verb": "get",
                "group": "balancedsource.io",
                "resource": "balancedsources",
                "namespace": namespace,
            },
        },
    }


def test_a_right_that_may_not_be_asked_for_is_an_error() -> None:
    with pytest.raises(KubernetesError, match="whether ann may get BalancedSources: because"):
        may_get(refusal(403), ANN, "default")


def test_of_a_long_message_only_the_beginning_is_shown() -> None:
    with pytest.raises(KubernetesError) as found:
        user_of(refusal(403, "x" * 1000))
    assert str(found.value).endswith(": " + "x" * 300)
