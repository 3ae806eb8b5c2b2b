"""Where a process runs, as far as it can know.

What goes with requests for splits, and decides which replica is near.

The host's name is known anywhere. The zone is known where someone says it: Kubernetes copies the
label of the node to the pod (1.35 and later), the operator passes that on as a variable, and users
set the variable or an option.
"""

import os
import socket
from collections.abc import Mapping
from typing import NamedTuple

from balanced_source.documents.environment import ZONE


class Whereabouts(NamedTuple):
    """Where a process runs.

    Attributes:
        host: its host name; in a pod, the name of the pod.
        zone: its availability zone; empty if it is unknown.
    """

    host: str
    zone: str = ""


def this_place(zone: str = "", environment: Mapping[str, str] = os.environ) -> Whereabouts:
    """Return where this process runs.

    Args:
        zone: what the user says; empty to go by the environment.
        environment: variables of the process.
    """
    return Whereabouts(host=socket.gethostname(), zone=zone or environment.get(ZONE, ""))
