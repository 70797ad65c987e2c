"""The table of commands: every method, who serves it, who may call it, and whether it changes something.

Rows come from the host's own parts, from features, and from protocol extensions (methods that begin with `_` or `x-`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from ahpkit.host.clients.extensions import Extensions, ExtensionsOfAgents
from ahpkit.host.feature import ConnectedClient
from ahpkit.host.policy.methods import Call, MethodRule, known_client
from ahpkit.host.registration import Command, CommandTable
from ahpkit.protocol.errors import MethodNotFound
from ahpkit.protocol.extensions import extension_method
from ahpkit.wire.rpc import Params

_MAX_NAME = 200
"""Characters of an unknown method's name that the error repeats."""


class NotificationRow(NamedTuple):
    """One row of the table for a notification. A handler that takes a while returns an awaitable."""

    name: str
    hear: Callable[[Any, Params], Awaitable[None] | None]
    policy: MethodRule = known_client


class Commands:
    """Finds the row of a method."""

    def __init__(
        self,
        registered: CommandTable,
        extensions: Extensions,
        notifications: Mapping[str, NotificationRow],
        of_agents: ExtensionsOfAgents,
    ) -> None:
        self._registered = registered
        self._extensions = extensions
        self._notifications = notifications
        self._of_agents = of_agents

    def find(self, call: Call) -> Command:
        """The row of a method, found by the name alone. The policy in the row decides whether the method may be called
        now."""
        method = extension_method(call.method)
        found = self._registered.find(method) or self._extensions.command(method)
        found = found or self._of_agents.command(method)
        if found is None:
            known_client(call)
            raise MethodNotFound(f"there is no method {call.method[:_MAX_NAME]}")
        return found

    def find_notification(self, call: Call) -> NotificationRow:
        """The row of a notification that this client may send now; raises the reason otherwise."""
        method = extension_method(call.method)
        found = self._notifications.get(method)
        if found is None and (hear := self._registered.notification(method)) is not None:
            found = NotificationRow(method, hear)
        if found is None and method.startswith("_"):
            found = NotificationRow(method, self._hears(method))
        if found is None:
            raise MethodNotFound(f"there is no notification {method[:_MAX_NAME]}")
        found.policy(call)
        return found

    def _hears(self, method: str) -> Callable[[ConnectedClient, Params], Awaitable[None]]:
        ours = self._extensions.hears(method)

        def hear(client: ConnectedClient, params: Params) -> Awaitable[None]:
            ours(client, params)
            return self._of_agents.hear(method, params)

        return hear


__all__ = ["Commands", "NotificationRow"]
