"""The port's adapter on kubernetes_asyncio: generic, because everything here is a manifest."""

import json
from collections.abc import Mapping, Sequence
from typing import Final, cast

import aiohttp
from kubernetes_asyncio.client import ApiClient
from kubernetes_asyncio.client.exceptions import ApiException

from balanced_source_operator.kube.port import (
    ConflictError,
    KubernetesError,
    Manifest,
    RefusedError,
    UnknownKindError,
    collection_path,
    object_path,
)
from balanced_source_operator.resources.kinds import MANAGER, POD, ResourceKind

REQUEST_TIMEOUT: Final = 15.0
"""Seconds for one request."""

_NOT_FOUND: Final = 404
_CONFLICT: Final = 409
_UNPROCESSABLE: Final = 422
"""Both for an object that would be invalid, and for a test of a JSON patch that fails."""

_INVALID: Final = (400, _UNPROCESSABLE)


class KubernetesClient:
    """See `KubernetesApi`."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    async def get(self, kind: ResourceKind, namespace: str, name: str) -> Manifest | None:
        try:
            return await self._call("GET", object_path(kind, namespace, name))
        except ApiException as error:
            if error.status == _NOT_FOUND and not _is_unknown_kind(error):
                return None
            raise translated(error, kind, name) from error

    async def list(self, kind: ResourceKind, namespace: str, *, selector: str) -> list[Manifest]:
        try:
            found = await self._call(
                "GET", collection_path(kind, namespace), query={"labelSelector": selector}
            )
        except ApiException as error:
            raise translated(error, kind) from error
        # Items of a list come without their kind.
        return [
            {"apiVersion": kind.api_version, "kind": kind.kind, **item} for item in found["items"]
        ]

    async def create(self, kind: ResourceKind, manifest: Manifest) -> Manifest:
        try:
            return await self._call(
                "POST", collection_path(kind, _namespace(manifest)), body=manifest
            )
        except ApiException as error:
            raise translated(error, kind, _name(manifest)) from error

    async def objection(self, kind: ResourceKind, manifest: Manifest) -> str | None:
        # Strict: by default the API server drops a misspelt field and accepts the rest.
        query = {"dryRun": "All", "fieldValidation": "Strict"}
        try:
            await self._call(
                "POST", collection_path(kind, _namespace(manifest)), body=manifest, query=query
            )
        except ApiException as error:
            if error.status in _INVALID:
                return _message(error)
            raise translated(error, kind, _name(manifest)) from error
        return None

    async def dry_run(self, kind: ResourceKind, manifest: Manifest) -> str | None:
        """Return what the API server says against applying an object, which is not stored.

        None if it accepts it.

        Raises:
            KubernetesError: as `get`, or the account may not create or update objects of that kind.
        """
        stored = await self.get(kind, _namespace(manifest), _name(manifest))
        if stored is None:
            return await self.objection(kind, manifest)
        # The API server refuses an update of a custom resource that names no revision.
        revision = {"resourceVersion": stored["metadata"]["resourceVersion"]}
        body = {**manifest, "metadata": {**manifest["metadata"], **revision}}
        query = {"dryRun": "All", "fieldValidation": "Strict"}
        try:
            await self._call(
                "PUT", object_path(kind, _namespace(body), _name(body)), body=body, query=query
            )
        except ApiException as error:
            if error.status in _INVALID:
                return _message(error)
            raise translated(error, kind, _name(manifest)) from error
        return None

    async def count_up(
        self, kind: ResourceKind, namespace: str, name: str, field: str, *, most: int
    ) -> tuple[int, int]:
        """Increase a number in ``spec`` by one, back to 0 after `most`.

        Returns the number before and after.

        Raises:
            KubernetesError: as `get`, or there is no such object, or someone else has changed it
                meanwhile.
        """
        stored = await self.get(kind, namespace, name)
        if stored is None:
            raise KubernetesError(f"there is no {kind.kind} {name!r} in namespace {namespace!r}")
        before = int(stored["spec"].get(field, 0))
        after = before + 1 if before < most else 0
        body = {
            "metadata": {"resourceVersion": stored["metadata"]["resourceVersion"]},
            "spec": {field: after},
        }
        path = object_path(kind, namespace, name)
        try:
            await self._call("PATCH", path, body=body, content_type="application/merge-patch+json")
        except ApiException as error:
            raise translated(error, kind, name) from error
        return before, after

    async def serves(self, kind: ResourceKind) -> bool:
        """Return whether the API server lists a kind, which it may not do yet as it starts.

        Args:
            kind: of a group that has a name.

        Raises:
            KubernetesError: it refused, or does not answer.
        """
        try:
            groups = (await self._call("GET", "/apis")).get("groups") or ()
            # An API server that starts lists a group later than it serves its kinds.
            if kind.group not in {group.get("name") for group in groups}:
                return False
            found = await self._call("GET", f"/apis/{kind.api_version}")
        except ApiException as error:
            if error.status == _NOT_FOUND:
                return False
            raise translated(error, kind) from error
        return any(known.get("name") == kind.plural for known in found.get("resources") or ())

    async def ask(self, method: str, path: str, *, body: Manifest | None = None) -> Manifest:
        """Send any other request, for commands that look at what is not an object.

        Raises:
            KubernetesError: the API server refused, or does not answer.
        """
        try:
            return await self._call(method, path, body=body)
        except ApiException as error:
            raise RefusedError(_message(error), status=int(error.status)) from error

    async def log(
        self, namespace: str, pod: str, container: str, *, previous: bool, tail: int, limit: int
    ) -> str:
        """Return the last lines of a container's log, with the time of each.

        Raises:
            KubernetesError: there is none, it may not be read, or the API server does not answer.
        """
        query = {
            "container": container,
            "previous": str(previous).lower(),
            "tailLines": str(tail),
            "limitBytes": str(limit),
            "timestamps": "true",
        }
        try:
            return await self._text(
                "GET", object_path(POD, namespace, pod, "log"), query=query, accept="*/*"
            )
        except ApiException as error:
            raise translated(error, POD, pod) from error

    async def replace(self, kind: ResourceKind, manifest: Manifest) -> Manifest:
        try:
            return await self._call(
                "PUT", object_path(kind, _namespace(manifest), _name(manifest)), body=manifest
            )
        except ApiException as error:
            if error.status == _NOT_FOUND:
                # Whoever swaps has lost the race in this case, too, and must look again.
                raise ConflictError(f"{kind.kind} {_name(manifest)} is gone") from error
            raise translated(error, kind, _name(manifest)) from error

    async def apply(self, kind: ResourceKind, manifest: Manifest) -> Manifest:
        try:
            return await self._call(
                "PATCH",
                object_path(kind, _namespace(manifest), _name(manifest)),
                body=manifest,
                content_type="application/apply-patch+yaml",
                # Forced: fields that someone else has edited are repaired, and not argued about.
                query={"fieldManager": MANAGER, "force": "true"},
            )
        except ApiException as error:
            raise translated(error, kind, _name(manifest)) from error

    async def patch_status(
        self, kind: ResourceKind, namespace: str, name: str, status: Manifest
    ) -> Manifest | None:
        try:
            return await self._call(
                "PATCH",
                object_path(kind, namespace, name, "status"),
                body={"status": status},
                content_type="application/merge-patch+json",
            )
        except ApiException as error:
            if error.status == _NOT_FOUND:
                return None
            raise translated(error, kind, name) from error

    async def scale(
        self, kind: ResourceKind, namespace: str, name: str, *, before: int, after: int
    ) -> None:
        where = "/spec/replicas"
        # The test makes this a compare-and-swap: a number that a user has set meanwhile stays.
        steps = [
            {"op": "test", "path": where, "value": before},
            {"op": "replace", "path": where, "value": after},
        ]
        try:
            await self._call(
                "PATCH",
                object_path(kind, namespace, name, "scale"),
                body=steps,
                content_type="application/json-patch+json",
            )
        except ApiException as error:
            # 422 means both; only the text for an object that would be invalid says so.
            if error.status == _UNPROCESSABLE and " is invalid" not in _message(error):
                raise ConflictError(
                    f"{kind.plural} {name}: the number of replicas is not {before} any more"
                ) from error
            raise translated(error, kind, name) from error

    async def delete(self, kind: ResourceKind, namespace: str, name: str, *, uid: str) -> None:
        # The precondition spares an object of that name that was created since.
        body = {"preconditions": {"uid": uid}, "propagationPolicy": "Background"}
        try:
            await self._call("DELETE", object_path(kind, namespace, name), body=body)
        except ApiException as error:
            # 409: the uid is another one, so the object that was meant is gone.
            if error.status not in (_NOT_FOUND, _CONFLICT):
                raise translated(error, kind, name) from error

    async def _call(
        self,
        method: str,
        path: str,
        *,
        body: Manifest | Sequence[Manifest] | None = None,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> Manifest:
        text = await self._text(method, path, body=body, query=query, content_type=content_type)
        return parsed(text)

    async def _text(
        self,
        method: str,
        path: str,
        *,
        body: Manifest | Sequence[Manifest] | None = None,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> str:
        try:
            response = await self._client.call_api(
                path,
                method,
                query_params=list((query or {}).items()),
                header_params={"Accept": accept, "Content-Type": content_type},
                body=body,
                auth_settings=["BearerToken"],
                # The library would parse the answer into its own models: here everything is a
                # manifest.
                _preload_content=False,
                _request_timeout=REQUEST_TIMEOUT,
            )
            text: str = await response.text()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise KubernetesError(f"the API server does not answer: {error!r}") from error
        if not 200 <= response.status < 300:  # noqa: PLR2004 - what HTTP calls success
            raise api_exception(response.status, text)
        return text


def api_exception(status: int, text: str) -> ApiException:
    """Return the client library's exception for an answer."""
    error = ApiException(status=status)
    error.body = text.encode()
    return error


def parsed(text: str) -> Manifest:
    """Return the manifest that was answered.

    Raises:
        KubernetesError: it is none: a proxy on the way may answer with a page of its own.
    """
    try:
        return json.loads(text)  # type: ignore[no-any-return]
    except ValueError as error:
        raise KubernetesError(f"the API server answers with no JSON: {text[:200]!r}") from error


def _namespace(manifest: Manifest) -> str:
    return str(manifest["metadata"]["namespace"])


def _name(manifest: Manifest) -> str:
    return str(manifest["metadata"]["name"])


def _answer(error: ApiException) -> str:
    return cast("bytes", error.body).decode()  # see `api_exception`


def _message(error: ApiException) -> str:
    text = _answer(error)
    try:
        return str(json.loads(text)["message"])
    except (ValueError, KeyError, TypeError):
        return text or f"HTTP status {error.status}"


def _is_unknown_kind(error: ApiException) -> bool:
    """A missing object is answered with a Status that names it; a missing kind with plain text."""
    try:
        return "name" not in json.loads(_answer(error)).get("details", {})
    except (ValueError, AttributeError):
        return True


def translated(error: ApiException, kind: ResourceKind, name: str = "") -> KubernetesError:
    """Return a refusal as an error of the port; its message names the object."""
    what = f"{kind.plural}.{kind.group}" if kind.group else kind.plural
    where = f"{what} {name}".strip()
    message = f"{where}: {_message(error)}"
    if error.status == _CONFLICT:
        return ConflictError(message)
    if error.status == _NOT_FOUND and _is_unknown_kind(error):
        return UnknownKindError(f"the kind {what} is not installed")
    return RefusedError(message, status=int(error.status))
