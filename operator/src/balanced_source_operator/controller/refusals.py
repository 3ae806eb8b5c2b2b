"""What a refusal by the API server, or no answer at all, means, and what to do about it."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from balanced_source.api import Problem
from balanced_source.reasons import Reason
from balanced_source_operator.kube.port import KubernetesError, RefusedError

_CAUSES: Final = (
    (
        re.compile(r"exceeded quota|must specify (limits|requests)"),
        Reason.QUOTA_EXCEEDED,
        "Raise the ResourceQuota of the namespace or delete objects that are not needed",
    ),
    (
        re.compile(r"status unknown for quota"),
        Reason.API_SERVER_REFUSED,
        (
            "The ResourceQuota is new and its objects are not counted yet; if this lasts, check"
            " kube-controller-manager"
        ),
    ),
    (
        re.compile(
            r"ValidatingAdmissionPolicy|admission webhook|failed calling webhook|violates"
            r" PodSecurity"
        ),
        Reason.ADMISSION_DENIED,
        (
            "Change the BalancedSource so that the admission policy allows the object, or change"
            " the policy"
        ),
    ),
    (
        re.compile(r"cannot \w+ resource|attempting to grant RBAC permissions"),
        Reason.PERMISSION_MISSING,
        (
            "Grant this right to the service account of the operator: install the roles of the Helm"
            " chart"
        ),
    ),
    (
        re.compile(r"is invalid:|unable to parse|strict decoding error"),
        Reason.OBJECT_INVALID,
        "Correct the field of the BalancedSource that the message names",
    ),
)
"""The API server answers most of these with the status 403, so only its words tell them apart."""

_OF_SUBMISSIONS: Final = (
    (
        re.compile(r'serviceaccount "[^"]*" not found'),
        Reason.SUBMISSION_FAILED,
        (
            "Create the service account of the driver with the rights that Spark needs"
            " (spark.jobNamespaces of the Helm chart), or name another one in"
            " spec.application.serviceAccount"
        ),
    ),
)
"""What the API server answers to Spark operators only."""

_CHECK_WEBHOOKS: Final = (
    "Usually an admission webhook hangs: check those that match this kind (kubectl get"
    " validatingwebhookconfigurations,mutatingwebhookconfigurations) and the services behind them"
)
_CHECK_SERVER: Final = (
    "Check the log of the API server and, for a custom resource, the conversion webhook of its CRD"
)

_CLIENT_ERRORS: Final = range(400, 500)
_TOO_MANY_REQUESTS: Final = 429

_FOR_ALL: Final = frozenset({Reason.QUOTA_EXCEEDED, Reason.ADMISSION_DENIED})


def refusal_problem(action: str, error: RefusedError, *, scope: str) -> Problem:
    """Return the problem that a refusal is.

    Args:
        action: what was refused, such as ``create ConfigMap orders-enumerator``.
        error: the answer.
        scope: the object, so that refusals of different objects are different problems.
    """
    words = str(error)
    reason, advice = refusal_cause(words)
    answer = f"The API server refused to {action} ({error.status}): {words.rstrip('.')}"
    message = f"{answer}. {advice}; the operator retries automatically."
    return Problem(reason=reason, message=message, scope=scope)


def unanswered_problem(action: str, *, since: float, is_read: bool, scope: str) -> Problem:
    """Return the problem that a request without an answer is.

    Args:
        action: what was asked for, as in `refusal_problem`.
        since: when the first of the attempts failed, seconds since the epoch.
        is_read: whether it changes nothing, so that no admission webhook hears of it.
        scope: the object, as in `refusal_problem`.
    """
    stamp = f"{datetime.fromtimestamp(since, UTC):%Y-%m-%dT%H:%M:%SZ}"
    message = (
        f"The API server has not answered the request to {action} since {stamp}, although it"
        f" answers other requests. {_CHECK_SERVER if is_read else _CHECK_WEBHOOKS}; the operator"
        " retries automatically"
    )
    return Problem(reason=Reason.REQUEST_UNANSWERED, message=message, scope=scope)


def cut_off_problem(error: KubernetesError) -> Problem:
    """Return the problem that any other error is, such as a conflict, that is repeated for long."""
    message = (
        f"The operator cannot serve this source: {str(error).rstrip('.')}. Check the cause that"
        " the message names; the operator retries automatically"
    )
    return Problem(reason=Reason.API_SERVER_REFUSED, message=message)


def refusal_cause(words: str) -> tuple[Reason, str]:
    """Return what a refusal is, and what to do about it.

    Args:
        words: of the API server.
    """
    return _known(words) or (Reason.API_SERVER_REFUSED, "Check the cause that the message names")


def is_final(error: RefusedError) -> bool:
    """Return whether repeating the call gives the same answer until someone acts."""
    return error.status in _CLIENT_ERRORS and error.status != _TOO_MANY_REQUESTS


def submission_refusal(words: str) -> tuple[Reason, str] | None:
    """Return reason and advice if the API server has refused the driver pod; None otherwise.

    Of what this operator may be refused, too, only for refusals that have the same remedy for the
    Spark operator. A missing right has another: it is not the right of this operator.

    Args:
        words: why a submission failed.
    """
    if (known := _known(words, _OF_SUBMISSIONS)) is not None:
        return known
    known = _known(words)
    return known if known is not None and known[0] in _FOR_ALL else None


def _known(
    words: str, causes: Sequence[tuple[re.Pattern[str], Reason, str]] = _CAUSES
) -> tuple[Reason, str] | None:
    return next(
        ((reason, advice) for pattern, reason, advice in causes if pattern.search(words)), None
    )
