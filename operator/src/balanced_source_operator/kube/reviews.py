"""Questions to the API server about rights: whose token is this, and may that user do this?"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import aiohttp
from kubernetes_asyncio.client import ApiClient

from balanced_source_operator.kube.port import KubernetesError
from balanced_source_operator.resources.kinds import BALANCED_SOURCE

SELF_ACCESS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_ACCESS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_TOKEN: Final = "/apis/authentication.k8s.io/v1/tokenreviews"  # noqa: S105 - a path
_TIMEOUT: Final = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """Whom the API server takes the bearer of a token for.

    Attributes:
        name: of the user or service account.
        uid: as the API server says; may be empty.
        groups: of the user.
        extra: further attributes that authorizers look at.
    """

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, Sequence[str]] = field(default_factory=dict)


async def post_review(
    client: ApiClient, path: str, body: Mapping[str, Any], question: str
) -> Mapping[str, Any]:
    """Return the `status` that the API server gives a review.

    `question` is for the message of an error.

    Raises:
        KubernetesError: it does not answer, or refuses the question.
    """
    try:
        async with asyncio.timeout(_TIMEOUT):
            response = await client.call_api(
                path,
                "POST",
                header_params={"Accept": "application/json", "Content-Type": "application/json"},
                body=body,
                auth_settings=["BearerToken"],
                _preload_content=False,
            )
            text = await response.text()
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise KubernetesError(f"the API server does not answer: {error!r}") from error
    try:
        answer = json.loads(text)
        if "status" in answer and isinstance(answer["status"], Mapping):
            return answer["status"]
        # Nothing else of the answer is shown: that of a TokenReview repeats the token.
        detail = str(answer.get("message", ""))[:300] if answer.get("kind") == "Status" else ""
    except (ValueError, TypeError, AttributeError):
        detail = ""
    raise KubernetesError(f"the API server does not say {question}{': ' if detail else ''}{detail}")


class Reviews:
    """Asks for users of the status page. Nothing is asked on their behalf but this."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    async def user_of(self, token: str) -> User | None:
        """Return whose token this is; None if the API server does not accept it.

        Raises:
            KubernetesError: it does not answer, or the operator may not ask.
        """
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token},
        }
        status = await post_review(self._client, _TOKEN, body, "whose token this is")
        found = status.get("user")
        if (
            status.get("authenticated") is not True
            or not isinstance(found, Mapping)
            or not found.get("username")
        ):
            return None
        return User(
            name=str(found["username"]),
            uid=str(found.get("uid", "")),
            groups=tuple(map(str, found.get("groups") or ())),
            extra=found.get("extra") or {},
        )

    async def may_get_sources(self, user: User, namespace: str) -> bool:
        """Return whether a user may get the BalancedSources of a namespace, or of all if empty.

        Raises:
            KubernetesError: the API server does not answer, or the operator may not ask.
        """
        attributes = {
            "verb": "get",
            "group": BALANCED_SOURCE.group,
            "resource": BALANCED_SOURCE.plural,
        }
        spec = {
            "user": user.name,
            "uid": user.uid,
            "groups": list(user.groups),
            "extra": {key: list(values) for key, values in user.extra.items()},
            "resourceAttributes": {**attributes, "namespace": namespace},
        }
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": spec,
        }
        question = f"whether {user.name} may get BalancedSources"
        return (await post_review(self._client, _ACCESS, body, question)).get("allowed") is True
