"""Asks a template for a copy that runs a module in our place: `python -I -S copied.py DOOR MODULE [ARGUMENT…]`.

Whoever started us reads and writes the copy's files, and learns its exit code from us. See `support.template`. Hundreds
of these are started, so they use what is built into Python: to import `json` and `socket` takes longer than all the
rest.
"""

import marshal
import posix
import signal
import sys
from _socket import AF_UNIX, SCM_RIGHTS, SOCK_SEQPACKET, SOL_SOCKET, socket

_A_NUMBER = 4
"""The size of a file descriptor's number in the data that is handed over, in bytes."""


def main() -> None:
    door, module, *arguments = sys.argv[1:]
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # Until there is a copy to pass it on to.
    ours, theirs = posix.pipe()
    environment = {_text(name): _text(value) for name, value in posix.environ.items()}
    job = marshal.dumps((module, arguments, posix.getcwd(), environment, False))
    files = b"".join(number.to_bytes(_A_NUMBER, sys.byteorder) for number in (0, 1, 2, theirs))
    asking = socket(AF_UNIX, SOCK_SEQPACKET)
    asking.connect(f"\0{door}")
    asking.sendmsg([job], [(SOL_SOCKET, SCM_RIGHTS, files)])
    asking.close()
    for number in (0, 1, 2, theirs):  # The copy has them: when it closes one, nobody else holds it open.
        posix.close(number)
    pid = _number(ours)
    signal.signal(signal.SIGTERM, lambda number, frame: posix.kill(pid, number))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    code = _number(ours)
    posix._exit(code if code >= 0 else 128 - code)  # pyright: ignore[reportPrivateUsage]  # `os` would have to be imported for it.


def _text(name: bytes) -> str:
    """Text as `os.environ` decodes it."""
    return name.decode(errors="surrogateescape")


def _number(pipe: int) -> int:
    """The number on the next line."""
    line = b""
    while not line.endswith(b"\n"):
        line += posix.read(pipe, 1) or b"\n"
    return int(line)


if __name__ == "__main__":
    main()
