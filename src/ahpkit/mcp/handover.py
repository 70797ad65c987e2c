"""The command that an agent starts as its MCP server: it hands its pipes over to the host.

    AHPKIT_MCP_SECRET=… python -I -S handover.py ADDRESS

From then on the agent and the host talk to each other directly. The command stays until the host is done or the agent
ends it.

The secret identifies the session. It is in the environment, because other users can read command lines. This program
needs only the standard library, so it starts quickly.
"""

import os
import socket
import stat
import sys

SECRET = "AHPKIT_MCP_SECRET"

TAKEN = b"\n"
"""The host's answer when it has the pipes. On some systems, pipes that are closed before the host has them are lost."""

_PATIENCE = 60.0


def hand_over(address: str, secret: str) -> int:
    """Hand standard input and output over, and wait until the host is done with them; returns the exit code."""
    if not (is_pipe(0) and is_pipe(1)):
        return _failed("an agent has to start this, with pipes for its input and output")
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_PATIENCE)
        try:
            connection.connect(named(address))
            socket.send_fds(connection, [secret.encode() + b"\n"], [0, 1])
            is_taken = connection.recv(1) == TAKEN
        except OSError as error:
            return _failed(f"the host cannot be reached: {error}")
        if not is_taken:
            return _failed("the host does not take this connection: its session has ended, or has too many of them")
        _let_go_of_pipes()
        connection.settimeout(None)
        try:
            connection.recv(1)
        except OSError:
            return 1
    return 0


def is_pipe(number: int) -> bool:
    """Whether a file descriptor is a pipe or a socket: the host can wait for these without changing how others read."""
    mode = os.fstat(number).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _let_go_of_pipes() -> None:
    """Only the host holds them now, so the agent sees their end when the host closes them."""
    null = os.open(os.devnull, os.O_RDWR)
    for end in (0, 1):
        os.dup2(null, end)


def _failed(why: str) -> int:
    sys.stderr.write(why + "\n")
    return 1


def named(address: str) -> str:
    """A socket's address for the system. On a command line, `@` stands for the zero byte before a name that is not a
    file."""
    return "\0" + address[1:] if address.startswith("@") else address


if __name__ == "__main__":
    sys.exit(hand_over(sys.argv[1], os.environ.pop(SECRET, "")))
