"""The environment that a container's spec asks for."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from testbed.process_node.fields import PodFacts, expand, resource_field
from testbed.process_node.objects import MissingObjectError, Objects

_Read = Callable[[Mapping[str, Any]], Awaitable[dict[str, bytes]]]


async def container_environment(
    container: Mapping[str, Any], pod: PodFacts, objects: Objects
) -> dict[str, str]:
    """Variables of `envFrom` and `env`, later ones winning, references among them resolved.

    Raises:
        MissingObjectError: a ConfigMap, Secret or key is not there.
    """
    values: dict[str, str] = {}
    for source in container.get("envFrom", []):
        values |= await _from_object(source, objects)
    for variable in container.get("env", []):
        value = await _value(variable, values, container, pod, objects)
        if value is not None:
            values[variable["name"]] = value
    return values


async def _from_object(source: Mapping[str, Any], objects: Objects) -> dict[str, str]:
    prefix = source.get("prefix", "")
    if "configMapRef" in source:
        data = await objects.config_map(source["configMapRef"])
    else:
        data = await objects.secret(source["secretRef"])
    return {prefix + key: value.decode() for key, value in data.items()}


async def _value(
    variable: Mapping[str, Any],
    known: Mapping[str, str],
    container: Mapping[str, Any],
    pod: PodFacts,
    objects: Objects,
) -> str | None:
    """The variable's value; None if it comes from an optional object that is not there."""
    source = variable.get("valueFrom")
    if not source:
        return expand(variable.get("value", ""), known)
    if "fieldRef" in source:
        return pod.field(source["fieldRef"]["fieldPath"])
    if "resourceFieldRef" in source:
        return resource_field(container, source["resourceFieldRef"])
    if "configMapKeyRef" in source:
        return await _key(source["configMapKeyRef"], objects.config_map)
    return await _key(source["secretKeyRef"], objects.secret)


async def _key(reference: Mapping[str, Any], read: _Read) -> str | None:
    data = await read(reference)
    if reference["key"] in data:
        return data[reference["key"]].decode()
    if reference.get("optional"):
        return None
    raise MissingObjectError(f"{reference['name']} has no key {reference['key']}")
