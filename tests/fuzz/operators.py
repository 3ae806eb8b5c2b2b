"""The whole operator on an API server in memory: hostile specs and documents, and no hot loop."""

import asyncio
from typing import Any, Final

from hypothesis import strategies as st

from balanced_source_operator.kube.port import KubernetesError
from balanced_source_operator.resources.kinds import BALANCED_SOURCE
from fuzz.documents import resealed, torn
from fuzz.judge import Judge, SilentError, TracebackError, shortened
from fuzz.manifests import specs
from support import virtual_time
from support.cluster_story import NAMESPACE, Story
from support.played_story import virtual_clock

SECONDS: Final = 120
CALLS: Final = 400
"""Requests in that time; a healthy source needs about a hundred."""

DOCUMENTS: Final = ("orders-enumerator", "orders-assignment", "orders-readers")
cases: Final = st.tuples(
    specs(), st.lists(st.tuples(st.sampled_from(DOCUMENTS), torn() | resealed()), max_size=2)
)


def check(case: Any, _: Judge) -> None:
    """Applies a spec, edits documents, lets two minutes pass.

    Then looks at what was said and how often was asked.
    """
    spec, edits = case
    if not isinstance(spec, dict):
        return
    story = Story()
    with virtual_clock():
        virtual_time.run(_play(story, spec, edits))
    given = {"spec": spec, "edits": edits}
    calls = sum(len(operator.client.calls) for operator in story.operators)
    if calls > CALLS:
        raise SilentError(f"a hot loop: {calls} requests in {SECONDS} s, for {shortened(given)}")
    if story.broken:
        raise TracebackError(f"{story.broken[0]} for {shortened(given)}")
    conditions = story.status.get("conditions", [])
    if not conditions:
        raise SilentError(f"no condition after {SECONDS} s, for {shortened(given)}")
    for condition in conditions:
        if condition["reason"] == "InternalError":
            raise TracebackError(f"{condition['message']} for {shortened(given)}")
        if condition["status"] == "True" and not str(condition["message"]).isprintable():
            raise SilentError(f"{condition['message']!r} for {shortened(given)}")


async def _play(story: Story, spec: Any, edits: Any) -> None:
    await story.begin()
    await asyncio.sleep(10)
    known = story.server.objects[BALANCED_SOURCE, NAMESPACE, "orders"]
    story.server.put(BALANCED_SOURCE, {**known, "spec": spec})
    for name, (_, text) in edits:
        await asyncio.sleep(20)
        try:
            story.tamper(name, text)
        except (KubernetesError, KeyError):
            continue  # it is not there
    await asyncio.sleep(SECONDS)
    await story.end()
