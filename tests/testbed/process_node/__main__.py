"""The node's program: `python -m testbed.process_node CONFIG.json`, until SIGTERM."""

import asyncio
import logging
import signal
import sys
from pathlib import Path

from testbed.process_node.api import Api
from testbed.process_node.config import NodeConfig
from testbed.process_node.log_server import serve_logs
from testbed.process_node.namespaces import mount_namespace_command
from testbed.process_node.node import Node
from testbed.process_node.pods import NodeServices
from testbed.process_node.registration import keep_registered

_log = logging.getLogger(__name__)


async def serve(config: NodeConfig) -> None:
    """Be a node until a signal asks to end; then all pods' processes are killed."""
    namespaces = config.mount_namespaces
    if namespaces is None:
        namespaces = mount_namespace_command() is not None
    end = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, end.set)
    async with Api(config.server, config.token, config.ca_file) as api:
        node = Node(NodeServices(api=api, config=config, namespaces=namespaces))
        runner = await serve_logs(node, config)
        _log.info("node %s runs, %s", config.name, "own roots" if namespaces else "paths rewritten")
        work = [keep_registered(api, config), *(reflector.run() for reflector in node.reflectors())]
        tasks = [asyncio.create_task(one) for one in work]
        tasks.append(asyncio.create_task(_until(end)))
        # a task of the node that fails takes the node down: half a node is worse than none
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        node.close()
        await runner.cleanup()
        for task in done:
            task.result()


async def _until(event: asyncio.Event) -> None:
    await event.wait()


def main() -> None:
    """Read the configuration named on the command line and serve."""
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(name)s %(message)s", stream=sys.stdout
    )
    asyncio.run(serve(NodeConfig.read(Path(sys.argv[1]))))


if __name__ == "__main__":
    main()
