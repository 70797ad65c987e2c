"""The command that an agent starts as its MCP server: it carries bytes between its pipes and the host.

    AHPKIT_MCP_SECRET=… python -I -S relay.py 127.0.0.1 PORT

The secret identifies the session. It is in the environment, because other users can read command lines. This program
needs only the standard library, so it starts quickly.
"""

import os
import socket
import sys
import threading

SECRET = "AHPKIT_MCP_SECRET"
CHUNK = 64 * 1024


def relay(address: str, port: int, secret: str) -> int:
    """Carry bytes until one side ends; returns the exit code."""
    connection = socket.socket()  # Not `create_connection`: it would look the name up, and import the modules for that.
    connection.settimeout(10)
    try:
        connection.connect((address, port))
    except OSError as error:
        sys.stderr.write(f"the host cannot be reached: {error}\n")
        return 1
    connection.settimeout(None)
    # Send each call at once, without waiting until earlier bytes are confirmed.
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.sendall(secret.encode() + b"\n")
    threading.Thread(target=_from_agent, args=(connection,), daemon=True).start()
    try:
        while data := connection.recv(CHUNK):
            _write(data)
    except OSError:
        return 1
    return 0


def _from_agent(connection: socket.socket) -> None:
    try:
        while data := os.read(0, CHUNK):
            connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def _write(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


if __name__ == "__main__":
    sys.exit(relay(sys.argv[1], int(sys.argv[2]), os.environ.pop(SECRET, "")))
