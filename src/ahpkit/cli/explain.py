"""Turns an exception into a message for a person. Bugs keep their traceback."""

from __future__ import annotations

import click

from ahpkit.client.errors import ActionRejected, ConnectionLost
from ahpkit.protocol.errors import AhpError
from ahpkit.transports.errors import ConnectError


def explain(error: Exception) -> click.ClickException | None:
    """The error as a message that says what to do; None when it is not one that a person can do something about."""
    match error:
        case BrokenPipeError():  # Whoever read our output has enough; click ends quietly.
            return None
        case ConnectError(status=401):
            text = f"{error}\nGive the host's token with --token or AHPKIT_TOKEN."
        case ConnectError(transient=True) | ConnectionLost():
            text = f"{error}\nIs the host running? Start one with: ahpkit serve"
        case ActionRejected(reason=reason):  # Which action that was says nothing to a person.
            text = reason
        case AhpError():
            text = str(error)
        case TimeoutError():
            text = "the host did not answer in time; is it busy? See: ahpkit doctor"
        case OSError(filename=str(name), strerror=str(reason)):
            text = f"{name}: {reason}"
        case _:
            return None
    return click.ClickException(text or type(error).__name__)


__all__ = ["explain"]
