"""`ahpkit` on a system that watches few files: `python -m support.few_watches_host KIND NUMBER serve …`.

KIND is `instances` or `watches`, as in `/proc/sys/user/max_inotify_KIND`. The limit holds in a user namespace of its
own: nothing else on the machine notices.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

_CLONE_NEWUSER = 0x10000000


def enter(kind: str, number: int) -> None:
    """Raises `OSError` where the system gives no namespaces."""
    user, group = os.getuid(), os.getgid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWUSER) != 0:
        raise OSError(ctypes.get_errno(), "no user namespaces here")
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    Path(f"/proc/sys/user/max_inotify_{kind}").write_text(str(number))


if __name__ == "__main__":
    enter(sys.argv.pop(1), int(sys.argv.pop(1)))
    if len(sys.argv) > 1:
        from ahpkit.cli.main import main

        main()
