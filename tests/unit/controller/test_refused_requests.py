"""What the answers of the API server mean, and which are final."""

import pytest

from balanced_source_adapters.kafka.config import without_secrets
from balanced_source_operator.controller.refusals import (
    cut_off_problem,
    is_final,
    refusal_cause,
    refusal_problem,
    submission_refusal,
    unanswered_problem,
)
from balanced_source_operator.kube.port import KubernetesError, RefusedError


@pytest.mark.parametrize(
    ("status", "expected"),
    [(399, False), (400, True), (428, True), (429, False), (430, True), (499, True), (500, False)],
)
def test_errors_of_the_client_are_final_unless_there_were_too_many_requests(
    status: int, *, expected: bool
) -> None:
    assert is_final(RefusedError("no", status=status)) is expected


OF_ALL = {
    "pods is forbidden: exceeded quota: team": "QuotaExceeded",
    "must specify limits": "QuotaExceeded",
    "must specify requests": "QuotaExceeded",
    'admission webhook "x" denied the request': "AdmissionDenied",
    "failed calling webhook x": "AdmissionDenied",
    "ValidatingAdmissionPolicy x denied": "AdmissionDenied",
    "violates PodSecurity": "AdmissionDenied",
}
OF_THE_OPERATOR = {
    "status unknown for quota: team": "ApiServerRefused",
    'cannot create resource "pods"': "PermissionMissing",
    "attempting to grant RBAC permissions": "PermissionMissing",
    "x is invalid: spec": "ObjectInvalid",
    "unable to parse": "ObjectInvalid",
    "strict decoding error": "ObjectInvalid",
    "something else": "ApiServerRefused",
}


@pytest.mark.parametrize(("words", "reason"), [*OF_ALL.items(), *OF_THE_OPERATOR.items()])
def test_a_refusal_is_known_by_its_words(words: str, reason: str) -> None:
    assert refusal_cause(words)[0] == reason
    of_submission = submission_refusal(words)
    assert of_submission == (refusal_cause(words) if words in OF_ALL else None)


def test_only_a_spark_operator_lacks_the_account_of_a_driver() -> None:
    words = 'error looking up service account: serviceaccount "spark" not found'
    found = submission_refusal(words)
    assert found is not None
    assert found[0] == "SubmissionFailed"
    assert refusal_cause(words)[0] == "ApiServerRefused"


def test_a_refusal_names_what_was_refused_and_its_answer_once() -> None:
    error = RefusedError("something else.", status=403)
    found = refusal_problem("create ConfigMap a", error, scope="ConfigMap a")
    assert (found.reason, found.scope) == ("ApiServerRefused", "ConfigMap a")
    assert found.message == (
        "The API server refused to create ConfigMap a (403): something else. Check the cause that"
        " the message names; the operator retries automatically."
    )


def test_a_call_that_fails_for_long_is_said_with_its_cause() -> None:
    found = cut_off_problem(KubernetesError("it was changed meanwhile."))
    assert found.reason == "ApiServerRefused"
    assert found.message.startswith(
        "The operator cannot serve this source: it was changed meanwhile. Check the cause"
    )


@pytest.mark.parametrize(
    ("is_read", "advice", "other"),
    [(True, "conversion webhook of its CRD", "hangs"), (False, "hangs", "conversion")],
)
def test_a_request_without_an_answer_says_since_when(
    advice: str, other: str, *, is_read: bool
) -> None:
    found = unanswered_problem("get Pod a", since=1_767_225_600.9, is_read=is_read, scope="Pod a")
    assert (found.reason, found.scope) == ("RequestUnanswered", "Pod a")
    assert "request to get Pod a since 2026-01-01T00:00:00Z, although" in found.message
    assert advice in found.message
    assert other not in found.message


@pytest.mark.parametrize(
    ("user", "text"), [("abc", "abc abcd"), ("abcd", "abc ***"), ("", "abc abcd")]
)
def test_a_user_with_a_short_name_is_left_in_texts(user: str, text: str) -> None:
    assert without_secrets("abc abcd", {"sasl.username": user}) == text


def test_secrets_are_hidden_the_longest_first() -> None:
    config = {"sasl.password": "open", "ssl.key.password": "opensesame", "client.id": "sesame"}
    assert without_secrets("opensesame, open and sesame", config) == "***, *** and sesame"
    assert without_secrets("as it is", {"sasl.password": ""}) == "as it is"
    assert without_secrets('Invalid value "a\nb" for x', {}) == "Invalid value for x"
