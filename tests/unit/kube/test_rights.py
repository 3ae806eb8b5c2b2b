"""Which rights are asked for, in which words, and what an answer means."""

import asyncio
from typing import Any

import pytest

from balanced_source_operator.kube.port import KubernetesError
from balanced_source_operator.kube.rights import NEEDED, Right, RightsCheck, needed
from balanced_source_operator.resources.kinds import LEASE, NAMESPACE, POD
from support.answering_api import AnsweringApi, ApiAnswer


def missing(*answers: ApiAnswer) -> tuple[list[str], AnsweringApi]:
    library = AnsweringApi(*answers)
    client: Any = library
    return asyncio.run(RightsCheck(client, ("jobs",)).missing()), library


def answer(**status: Any) -> ApiAnswer:
    return ApiAnswer(201, {"status": status})


@pytest.mark.parametrize("status", [{}, {"denied": False}, {"reason": "no rule allows it"}])
def test_a_review_that_does_not_say_whether_it_is_allowed_is_an_error(
    status: dict[str, Any],
) -> None:
    """Taken for a refusal, it would send someone to look for a role that is there."""
    words = "does not say whether the operator may get balancedsources in namespace jobs$"
    with pytest.raises(KubernetesError, match=words):
        missing(answer(**status))


def test_a_right_is_missing_exactly_if_it_is_not_allowed() -> None:
    found, library = missing(answer(allowed=False, denied=True), answer(allowed=True))

    assert found == ["get balancedsources in namespace jobs"]
    assert len(library.requests) == len(list(needed(("jobs",))))
    first = library.requests[0]
    assert first.line == "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    assert first.body == {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {
            "resourceAttributes": {
                "namespace": "jobs",
                "verb": "get",
                "group": "balancedsource.io",
                "resource": "balancedsources",
                "subresource": "",
                "name": "",
            }
        },
    }


@pytest.mark.parametrize(
    ("right", "words"),
    [
        (Right(verb="list", kind=POD, subresource="", namespace=""), "list pods in all namespaces"),
        (
            Right(verb="get", kind=POD, subresource="log", namespace="a", name="driver"),
            "get pods/log/driver in namespace a",
        ),
        (
            Right(verb="watch", kind=NAMESPACE, subresource="", namespace=""),
            "watch namespaces in the cluster",
        ),
    ],
)
def test_a_right_has_words(right: Right, words: str) -> None:
    assert str(right) == words


def test_the_rights_on_the_lease_and_on_labels_come_first() -> None:
    found = list(needed(("a", "b"), selector="team=x", lease_namespace="system"))
    each = [(kind, verb) for kind, _, verbs in NEEDED for verb in verbs]

    assert [right.kind for right in found[:5]] == [LEASE, LEASE, LEASE, NAMESPACE, NAMESPACE]
    assert {right.namespace for right in found[:3]} == {"system"}
    assert [(right.namespace, right.kind, right.verb) for right in found[5:]] == [
        (namespace, *pair) for namespace in ("a", "b") for pair in each
    ]
