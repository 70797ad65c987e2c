"""Asks a template for a copy that runs a module in our place: `python -S -P copied.py DOOR MODULE [ARGUMENT…]`.

Whoever started us reads and writes the copy's files, and learns its exit code from us. See `support.template`.
"""

import json
import os
import signal
import socket
import sys


def main() -> None:
    door, module, *arguments = sys.argv[1:]
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # Until there is a copy to pass it on to.
    ours, theirs = os.pipe()
    job = {"module": module, "arguments": arguments, "directory": os.getcwd(), "environment": dict(os.environ)}
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asking:
        asking.connect(f"\0{door}")
        socket.send_fds(asking, [json.dumps({**job, "terminal": False}).encode()], [0, 1, 2, theirs])
    for number in (0, 1, 2, theirs):  # The copy has them: when it closes one, nobody else holds it open.
        os.close(number)
    with os.fdopen(ours) as told:
        pid = int(told.readline())
        signal.signal(signal.SIGTERM, lambda number, frame: os.kill(pid, number))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        code = int(told.readline())
    os._exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main()
