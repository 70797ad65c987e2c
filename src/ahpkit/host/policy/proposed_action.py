"""The input of the policy's rules: the client, the action and the state."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any, Generic, NamedTuple, TypeVar, cast

from ahpkit.host.limits import MAX_ID
from ahpkit.protocol.channels import ChannelState
from ahpkit.protocol.chat.state import Turn
from ahpkit.protocol.common.actions import StateAction
from ahpkit.protocol.common.state import ROOT_URI
from ahpkit.protocol.root import RootState
from ahpkit.protocol.session.state import SessionState

StateOf = Callable[[str], ChannelState | None]
"""The present state of any channel by URI."""

_Action = TypeVar("_Action", covariant=True)
_State = TypeVar("_State", covariant=True)
_Entry = TypeVar("_Entry", bound=Mapping[str, object])

_MAX_CHATS = 64
"""Chats whose turns are remembered by id."""


class TurnIds:
    """The ids of all turns of a chat.

    Only turns that were added since the last call are read. Turns are added and removed only at the end of their list.
    So if the list still has the same turn at the same place, all turns before it are the same, too.
    """

    def __init__(self) -> None:
        self._chats: OrderedDict[str, tuple[int, Turn, set[str]]] = OrderedDict()
        """By chat: how many turns were read, the last of them, and the ids of all of them."""

    def of(self, chat: str, turns: Sequence[Turn]) -> Set[str]:
        """The ids of `turns`, which are the present turns of a chat."""
        count, last, ids = self._chats.pop(chat, (0, None, set[str]()))
        if not (0 < count <= len(turns) and turns[count - 1] is last):
            count, ids = 0, set[str]()
        ids.update(turn["id"] for turn in turns[count:])
        if turns:
            self._chats[chat] = len(turns), turns[-1], ids
        if len(self._chats) > _MAX_CHATS:
            self._chats.popitem(last=False)
        return ids


class ProposedAction(NamedTuple, Generic[_Action, _State]):
    """A client's action that has the right shape and is addressed to a channel that exists.

    A rule says which action and which state it looks at: `ProposedAction[SessionTitleChangedAction, SessionState]`.
    """

    client_id: str
    channel: str
    action: _Action
    state: _State
    state_of: StateOf
    session: SessionState | None = None
    """The session that the channel belongs to, where the channel is not a session itself."""
    turn_ids: TurnIds | None = None
    """A cache of the ids of turns; None: there is none."""

    @property
    def root(self) -> RootState | None:
        """The state of the host itself."""
        return cast("RootState | None", self.state_of(ROOT_URI))


Rule = Callable[[ProposedAction[Any, Any]], str | None]
"""Returns a reason for people; None: the action is allowed."""


def allow(proposed: ProposedAction[object, object]) -> str | None:
    """The rule for actions that any client may dispatch in any state."""
    return None


def find(entries: Iterable[_Entry] | None, key: str, value: object) -> _Entry | None:
    """The first entry whose `key` is `value`."""
    return next((entry for entry in entries or () if entry.get(key) == value), None)


def check_ids(action: StateAction) -> str | None:
    """Why the ids in an action cannot be used: many actions repeat an id, so its length is limited."""
    for key, value in action.items():
        if isinstance(value, str) and len(value) > MAX_ID and (key == "id" or key.endswith("Id")):
            return f"{key}: an id has at most {MAX_ID} characters, this one has {len(value)}"
    return None


def repeated(values: Iterable[str]) -> str | None:
    """The first value that occurs twice."""
    seen: set[str] = set()
    for value in values:
        if value in seen:
            return value
        seen.add(value)
    return None


def check_names(what: str, names: Iterable[str], *, where: str = "") -> str | None:
    """Why these names cannot identify things: a name is empty, too long or given twice."""
    names = list(names)
    if not all(names):
        return f"the {what} must not be empty{where}"
    if (longest := max(map(len, names), default=0)) > MAX_ID:
        return f"a {what} has at most {MAX_ID} characters, this one has {longest}{where}"
    if (name := repeated(names)) is not None:
        return f"{what} {name!r} is given twice{where}"
    return None


__all__ = ["ProposedAction", "Rule", "StateOf", "TurnIds", "allow", "check_ids", "check_names", "find", "repeated"]
