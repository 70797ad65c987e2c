"""Stores the host's approval rules and the record of decisions.

`Approvals` is the feature that keeps them and serves `x-ahpkit/rules/…` and `x-ahpkit/approvals/list`. The calls of one
chat use a `CallGate`. Rules of a chat or a session are forgotten with the session.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypedDict, Unpack

from ahpkit.host.feature import ConnectedClient, Feature, Services
from ahpkit.host.limits import MAX_RULES, MAX_RULES_OF_A_TOOL
from ahpkit.host.registration import Command, Registration
from ahpkit.platform.files import followed, local_path
from ahpkit.protocol.chat.state import ConfirmationOption
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import InvalidParams, InvalidRequest, NotFound
from ahpkit.tools.approvals import MAX_ENTRIES, Approval, By, Of, options_for, rule_from
from ahpkit.tools.gate import Objection
from ahpkit.tools.rules import ASK, Place, Rule, Ruling, judge
from ahpkit.tools.subject import Subject, fixed_part, subject_of

_log = logging.getLogger(__name__)

_NOT_IN_A_CHAT = "A person has to decide about this call, and can be asked in a chat only"

_RULES = "rules/"
_LOG = "approvals/"
_SHOWN = 2000
"""Characters of an input that are kept in the record."""
_LISTED = 1000

_Params = Mapping[str, Any]
"""Params and results of ahpkit's own methods, which have no types in the protocol."""


class Approvals(Feature):
    """Rules and decisions of a host. `configured` rules come from the settings and are not stored here."""

    name = "approvals"

    def __init__(self, configured: Sequence[Rule] = ()) -> None:
        self._configured = [_in_real_folders(rule) for rule in configured]
        self._rules: dict[str, tuple[Rule, str]] = {}
        """Rules that people made, each with the session in which it was made."""
        self._followers: list[Callable[[], None]] = []
        """Calls that wait for a person."""
        self._entries: list[str] = []
        self._number = 0

    def register(self, host: Registration, services: Services) -> None:
        self._services = services
        host.recover.add(self._load)
        host.sessions.disposed.add(self._forget_session)
        host.sessions.chat_disposed.add(self._forget_chat)
        host.commands.add(Command("_ahpkit/rules/list", self._list))
        host.commands.add(Command("_ahpkit/rules/add", self._add, changes=True))
        host.commands.add(Command("_ahpkit/rules/remove", self._remove, changes=True))
        host.commands.add(Command("_ahpkit/approvals/list", self._list_decisions))

    def _load(self) -> None:
        for key, value in self._services.values.items(_RULES):
            try:
                rule = _in_real_folders(Rule.from_json(value["rule"]))
            except ValueError:  # A newer version wrote this rule. It is ignored, so a person is asked.
                continue
            self._rules[key.removeprefix(_RULES)] = (rule, value.get("session", ""))
        self._entries = sorted(key for key, _ in self._services.values.items(_LOG))
        self._number = int(self._entries[-1].removeprefix(_LOG)) if self._entries else 0

    # -- rules -----------------------------------------------------------------------------------------------------

    @property
    def rules(self) -> list[Rule]:
        return [*self._configured, *(rule for rule, _ in self._rules.values())]

    def add(self, rule: Rule, session: str) -> Rule:
        """Store a rule, and return the stored form. It replaces rules about the same calls."""
        rule = _in_real_folders(rule)
        for known in self._saying_the_same(rule):
            self.remove(known)
        self._rules[rule.id] = (rule, session)
        self._services.values.set(_RULES + rule.id, {"rule": rule.as_json(), "session": session})
        for look in list(self._followers):
            look()
        return rule

    def _saying_the_same(self, rule: Rule) -> list[str]:
        """The stored rules that a new rule replaces."""
        meaning = rule.meaning
        return [known for known, (other, _) in self._rules.items() if other.meaning == meaning]

    def no_room(self, rule: Rule) -> str | None:
        """Why this rule cannot be stored because there are too many; None: it can. A rule that replaces another needs
        no room."""
        if self._saying_the_same(_in_real_folders(rule)):
            return None
        if len(self.rules) >= MAX_RULES:
            return f"this host has {MAX_RULES} rules, which is the limit; remove some first"
        alike = sum((one.owner, one.tool) == (rule.owner, rule.tool) for one in self.rules)
        if alike < MAX_RULES_OF_A_TOOL:
            return None
        about = rule.tool or rule.owner
        return f"there are {alike} rules about {about}, which is the limit; remove some first"

    @contextmanager
    def follow(self, look: Callable[[], None]) -> Generator[None]:
        """Call a function after each new rule, while this context is entered."""
        self._followers.append(look)
        try:
            yield
        finally:
            self._followers.remove(look)

    def remove(self, id: str) -> bool:
        self._services.values.set(_RULES + id, None)
        return self._rules.pop(id, None) is not None

    def _forget_session(self, session_uri: str) -> None:
        for id, (rule, session) in list(self._rules.items()):
            if session == session_uri and rule.scope in ("chat", "session"):
                self.remove(id)

    def _forget_chat(self, chat_uri: str) -> None:
        """Forget the rules of a chat that is gone, because another chat may get the same URI."""
        for id, (rule, _) in list(self._rules.items()):
            if rule.scope == "chat" and rule.place == chat_uri:
                self.remove(id)

    # -- decisions -------------------------------------------------------------------------------------------------

    def record(self, entry: Approval) -> None:
        self._number += 1
        key = f"{_LOG}{self._number:012}"
        self._services.values.set(key, entry.as_json())
        self._entries.append(key)
        if len(self._entries) > MAX_ENTRIES:
            self._services.values.set(self._entries.pop(0), None)

    def decisions(self, session: str | None = None, limit: int = _LISTED) -> list[Mapping[str, Any]]:
        """The recorded decisions; the newest is the last."""
        found: list[Mapping[str, Any]] = []
        for key in reversed(self._entries):
            entry = self._services.values.get(key)
            if entry is not None and session in (None, entry["session"]):
                found.append(entry)
            if len(found) >= limit:
                break
        return found[::-1]

    # -- for clients -----------------------------------------------------------------------------------------------

    async def _list(self, client: ConnectedClient, params: _Params) -> _Params:
        configured = {rule.id for rule in self._configured}
        listed = [{**rule.as_json(), "says": rule.says()} for rule in self.rules]
        return {"rules": [one | ({"configured": True} if one["id"] in configured else {}) for one in listed]}

    async def _add(self, client: ConnectedClient, params: _Params) -> _Params:
        given = {
            key: params[key]
            for key in ("decision", "kind", "owner", "tool", "pattern", "scope", "place")
            if key in params
        }
        made = {"id": self._services.new_id(), "createdAt": self._services.now(), "createdBy": client.client_id}
        try:
            rule = Rule.from_json({**given, **made})
        except ValueError as error:
            raise InvalidParams(str(error)) from None
        if (reason := self.no_room(rule)) is not None:
            raise InvalidRequest(reason)
        place = rule.place or ""
        session = self._services.session_of(place) or "" if rule.scope == "chat" else place
        rule = self.add(rule, session)
        return {**rule.as_json(), "says": rule.says()}

    async def _remove(self, client: ConnectedClient, params: _Params) -> None:
        id = str(params.get("id"))
        if any(rule.id == id for rule in self._configured):
            raise InvalidParams(f"the rule {id!r} is in the host's configuration: take it out there")
        if not self.remove(id):
            raise NotFound(f"there is no rule {id!r}")

    async def _list_decisions(self, client: ConnectedClient, params: _Params) -> _Params:
        limit = params.get("limit")
        count = min(limit, _LISTED) if isinstance(limit, int) and limit > 0 else _LISTED
        session = params.get("session")
        return {"approvals": self.decisions(session if isinstance(session, str) else None, count)}


def _in_real_folders(rule: Rule) -> Rule:
    """A rule with the real paths of its folders, so that a link to a workspace means the same workspace.

    Paths of an allowing rule are resolved when it is made: a link that changes later does not widen it. The paths of a
    denying rule are kept as they were written, and resolved again for each call.
    """
    if rule.scope == "workspace":
        rule = replace(rule, place=_real(rule.place or ""))
    return _in_real_places(rule) if rule.decision == "allow" else rule


def _in_real_places(rule: Rule) -> Rule:
    if rule.kind != "path":
        return rule
    fixed = fixed_part(rule.pattern)
    return replace(rule, pattern=_real_name(fixed or "/").rstrip("/") + rule.pattern.removeprefix(fixed))


def _real_name(path: str) -> str:
    """A path with its links followed; unchanged if there can be no such file."""
    try:
        return followed(path)
    except (ValueError, OSError):
        return os.path.normpath(path)


@lru_cache(maxsize=256)
def _folder(uri: str) -> str:
    """The path of a workspace, or its URI if it is not a folder of this machine. Computed for each call."""
    return str(local_path(uri) or uri)


def _real(uri: str) -> str:
    folder = local_path(uri)
    return uri if folder is None else Path(followed(folder)).as_uri()


@dataclass(frozen=True, slots=True)
class AskedCall:
    """A call whose approval is being decided."""

    call_id: str
    turn_id: str
    subject: Subject
    shown: JsonObject


class DecisionOptions(TypedDict, total=False):
    """The options of `CallGate.decided`: the fields of an `Approval`."""

    who: str
    option: str | None
    reason: str | None
    edited: str
    of: Of


class CallGate:
    """The gate for the calls of one chat."""

    def __init__(
        self,
        approvals: Approvals,
        guard: Callable[[str, str, str | None], Awaitable[Objection | None]],
        *,
        place: Callable[[], Place],
        provider: str,
        new_id: Callable[[], str],
        now: Callable[[], int],
        setting: bool | None = None,
    ) -> None:
        """`setting()`: the configuration's decision in place of a person's."""
        self._approvals = approvals
        self._guard = guard
        self._place = place
        self._provider = provider
        self._new_id = new_id
        self._now = now
        self._home = os.path.expanduser("~")
        self.setting = setting

    async def guard(self, name: str, tool_input: str, owner: str | None) -> Objection | None:
        """The objection of a guard to a call, before anybody is asked."""
        return await self._guard(name, tool_input, owner)

    def subject(self, name: str, tool_input: str, owner: str | None, paths: Sequence[str]) -> Subject:
        """The call in the form that rules are compared with. It has the paths of files both as they are written and
        with links followed."""
        return subject_of(
            owner or f"agent:{self._provider}",
            name,
            tool_input,
            workspace=_folder(self._place().workspace),
            is_server=owner is not None and owner.startswith("mcp:"),
            paths=paths,
            home=self._home,
            real=_real_name,
            is_folder=os.path.isdir,
        )

    def judge(self, subject: Subject) -> Ruling:
        rules = [
            rule for rule in self._approvals.rules if rule.is_about(subject.owner) and rule.tool in ("", subject.tool)
        ]
        if not rules:
            return ASK
        denials = [_in_real_places(rule) for rule in rules if (rule.decision, rule.kind) == ("deny", "path")]
        place = self._place()
        if any(rule.scope == "workspace" for rule in rules):
            place = replace(place, workspace=_real(place.workspace))
        return judge(dict.fromkeys([*rules, *denials]), subject, place)

    async def refusal(self, name: str, tool_input: str, owner: str | None, *, title: str, client_id: str) -> str | None:
        """Why a client may not make a call directly, outside of a chat; None: it may. No person is asked."""
        subject = self.subject(name, tool_input, owner, ())
        asked = AskedCall(self._new_id(), "", subject, {"title": title, "input": tool_input})
        if (objection := await self.guard(name, tool_input, owner)) is not None:
            denial = f"{_NOT_IN_A_CHAT}: {objection.reason}" if objection.asks else objection.reason
            self.decided(asked, allowed=False, by="guard", reason=denial)
            return denial
        ruling = self.judge(subject)
        if (rule := ruling.rule) is not None and ruling.decision != "allow":
            is_clear = ruling.decision == "deny"
            denial = denied_by(rule) if is_clear else f"{_NOT_IN_A_CHAT}: a rule may deny it ({rule.says()})"
            self.decided(asked, allowed=False, by="rule", who=rule.id, reason=denial)
            return denial
        self.decided(asked, allowed=True, by="person", who=client_id)
        return None

    @contextmanager
    def follow(self, subject: Subject, decided: Callable[[Ruling], None]) -> Generator[None]:
        """Call a function when a new rule decides a call about which a person is being asked."""

        def look() -> None:
            if (ruling := self.judge(subject)).decision != "ask":
                decided(ruling)

        with self._approvals.follow(look):
            yield

    def options(self, subject: Subject, own: Sequence[ConfirmationOption]) -> list[ConfirmationOption]:
        return options_for(subject, own)

    def decided(self, asked: AskedCall, *, allowed: bool, by: By, **given: Unpack[DecisionOptions]) -> None:
        """Record a decision, and store the rule that was made with it."""
        place, now, who, option = self._place(), self._now(), given.get("who", ""), given.get("option")
        if by in ("person", "client"):
            rule = rule_from(option, asked.subject, place, id=self._new_id(), now=now, by=who)
            if rule is not None and (full := self._approvals.no_room(rule)) is not None:
                _log.warning("a decision of %s holds for this call only: %s", who, full)
            elif rule is not None:
                self._approvals.add(rule, place.session)
        shown = {**asked.shown, "input": str(asked.shown.get("input", ""))[:_SHOWN]}
        self._approvals.record(
            Approval(
                at=now,
                session=place.session,
                chat=place.chat,
                turn=asked.turn_id,
                call=asked.call_id,
                owner=asked.subject.owner,
                tool=asked.subject.tool,
                decision="allowed" if allowed else "denied",
                by=by,
                of=given.get("of", "call"),
                who=who,
                shown=shown,
                option=option or "",
                reason=given.get("reason") or "",
                edited=given.get("edited", "")[:_SHOWN],
            )
        )


def denied_by(rule: Rule) -> str:
    """The message about a call that a rule denies, for people and agents."""
    return f"A rule denies this: {rule.says()}"


__all__ = ["Approvals", "AskedCall", "CallGate", "DecisionOptions", "denied_by"]
