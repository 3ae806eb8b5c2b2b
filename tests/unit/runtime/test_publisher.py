"""The documents of an assignment: one for each host, each written when it has changed."""

import asyncio
from dataclasses import replace

from balanced_source.documents.assignment import Assignment
from balanced_source_operator.resources.kinds import BALANCED_SOURCE
from balanced_source_operator.runtime.publisher import Publisher
from support.builders import identity, source_body
from support.fake_kubernetes import FakeKubernetes

FIRST = Assignment(epoch=1, parallelism=2, incarnations={"0": 1, "1": 1})


def test_only_hosts_that_do_not_have_an_assignment_get_it() -> None:
    server = FakeKubernetes()
    server.add(BALANCED_SOURCE, source_body())
    client = server.client()
    publisher = Publisher(client, identity())

    def written() -> list[str]:
        found = [call for call in client.calls if call.startswith(("create", "replace"))]
        client.calls.clear()
        return [call.split()[-1] for call in found]

    async def play() -> None:
        assert await publisher.publish(FIRST, ("0", "1"))
        both = written()
        assert len(set(both)) == len(both) == 2

        assert not await publisher.publish(FIRST, ("0", "1"))
        assert written() == []

        assert await publisher.publish(FIRST, ("0", "1", "2")), "a further host"
        (third,) = written()
        assert third not in both

        assert await publisher.publish(replace(FIRST, epoch=2), ("1",))
        assert len(written()) == 1

    asyncio.run(play())
