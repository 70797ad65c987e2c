"""What the system allows one process, where it has such limits. Knows nothing of what they are needed for."""

from __future__ import annotations

from contextlib import suppress


def allow_open_files(wanted: int) -> None:
    """Let this process have that many files open, or as many as the system lets it have."""
    try:
        import resource
    except ImportError:  # A system without such limits.
        return
    with suppress(OSError, ValueError):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
        if soft != resource.RLIM_INFINITY and soft < most:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


__all__ = ["allow_open_files"]
