"""The last step before a container's program: an own root, then exec.

Run as `unshare --mount … python -I -S sandbox.py SPEC.json`; only the standard library is imported,
so it costs some 20 ms. With `binds` in the spec, the process gets a new root: a memory file system
that shows the entries of the host's root, with the binds mounted over it. Without, it only changes
the working directory. Either way the process dies with the one that started it: drivers that
outlive the node would write beside their successors.

The spec has `argv`, `cwd`, `parent` (the starting process's pid, or null to outlive it) and, for an
own root, `root` (an empty folder) and `binds` (path and the host's path).
"""

import ctypes
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

_LIBC = ctypes.CDLL(None, use_errno=True)
_MS_BIND, _MS_REC, _MS_PRIVATE = 4096, 16384, 1 << 18
_PR_SET_PDEATHSIG = 1
_NOT_FOUND = 127


def mount(source: str, target: str, kind: str, flags: int) -> None:
    """Mount something, as the system call does.

    Raises:
        OSError: it failed.
    """
    if _LIBC.mount(source.encode(), target.encode(), kind.encode(), flags, None):
        code = ctypes.get_errno()
        raise OSError(code, f"cannot mount {source} on {target}: {os.strerror(code)}")


class Root:
    """A new root in the making.

    Folders of the host that are shown in it are never written to: where a mount point is missing,
    its parent is replaced by a memory file system that shows the parent's entries, and the mount
    point is made there.

    Args:
        path: an empty folder.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._own: set[str] = set()
        self._shown: dict[str, str] = {}
        mount("none", "/", "", _MS_PRIVATE | _MS_REC)
        self._replace(path, "/")

    def bind(self, target: str, source: str) -> None:
        """Show the host's `source` at `target`; parents must be bound before their children."""
        place, host = self._path, ""
        for part in _resolved_parent(target).strip("/").split("/"):
            if not os.path.lexists(f"{place}/{part}"):
                self._make(place, host, part)
            place, host = f"{place}/{part}", f"{host}/{part}"
        # below an earlier bind, what is shown comes from there
        if place in self._own and not Path(source).is_dir():  # it was made as a folder, for a file
            Path(place).rmdir()
            Path(place).touch()
        mount(source, place, "", _MS_BIND | _MS_REC)
        self._own.discard(place)
        self._shown[host] = source

    def enter(self) -> None:
        """Make it this process's root."""
        os.chroot(self._path)

    def _make(self, place: str, host: str, part: str) -> None:
        if place not in self._own:
            self._replace(place, self._source(host))
        Path(f"{place}/{part}").mkdir()
        self._own.add(f"{place}/{part}")

    def _source(self, host: str) -> str:
        """Where the content of a folder comes from: the innermost bind around it, or the host."""
        around = [path for path in self._shown if host == path or host.startswith(f"{path}/")]
        if not around:
            return host or "/"
        innermost = max(around, key=len)
        return self._shown[innermost] + host[len(innermost) :]

    def _replace(self, place: str, source: str) -> None:
        entries = list(os.scandir(source)) if Path(source).is_dir() else []
        mount("balanced-source", place, "tmpfs", 0)
        self._own.add(place)
        for entry in entries:
            _show(entry, f"{place}/{entry.name}")


def _show(entry: "os.DirEntry[str]", target: str) -> None:
    if entry.is_symlink():
        Path(target).symlink_to(Path(entry.path).readlink())
        return
    if entry.is_dir():
        Path(target).mkdir()
    else:
        Path(target).touch()
    try:
        mount(entry.path, target, "", _MS_BIND | _MS_REC)
    except OSError as error:  # an entry that vanished or cannot be bound is only missing
        print(f"sandbox: {error}", file=sys.stderr)  # noqa: T201 - the container's log


def _resolved_parent(path: str) -> str:
    """The path with links among its parents followed, such as /var/run to /run."""
    parent, name = os.path.split(path)
    return f"{os.path.realpath(parent)}/{name}"


def _die_with(parent: int) -> None:
    # after unshare, which would clear it
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(0)


def main(spec: dict[str, Any]) -> None:
    """Set up what the spec says and become its program; ends with 127 if there is none."""
    if spec.get("binds") is not None:
        root = Root(spec["root"])
        for target, source in sorted(spec["binds"].items()):
            root.bind(target, source)
        root.enter()
    if spec.get("parent") is not None:
        _die_with(spec["parent"])
    try:
        Path(spec["cwd"]).mkdir(parents=True, exist_ok=True)
        os.chdir(spec["cwd"])
        os.execvp(spec["argv"][0], spec["argv"])  # noqa: S606 - the container's own program
    except OSError as error:
        print(f"cannot run {spec['argv'][0]} in {spec['cwd']}: {error}", file=sys.stderr)  # noqa: T201
        sys.exit(_NOT_FOUND)


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()))
