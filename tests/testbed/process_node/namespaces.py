"""Whether, and by which command, a process can get a mount namespace of its own."""

import shutil
import subprocess
from functools import cache

# real root first: in a user namespace, files of other users would be out of reach
_WAYS = (("--mount",), ("--mount", "--map-root-user"))


@cache
def mount_namespace_command() -> tuple[str, ...] | None:
    """What to put before a command so that it runs in a mount namespace.

    None if this user may not have one: Docker's default profile and some systems forbid it.
    """
    unshare = shutil.which("unshare")
    if unshare is None:
        return None
    for way in _WAYS:
        tried = subprocess.run([unshare, *way, "true"], capture_output=True, check=False)  # noqa: S603
        if tried.returncode == 0:
            return (unshare, *way)
    return None
