"""Exports sessions as documents and imports them, and removes what looks like a secret.

`ahpkit.host.sessions.session_import` defines the format and imports documents.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from ahpkit.client import Client, Session
from ahpkit.wire.codec import encode

Progress = Callable[[str], None]
"""Called with a text about the progress."""

_PAGE = 100
"""The number of turns that are asked for in one request."""

_PIECE = 4 * 1024 * 1024
"""Bytes of turns that are sent in one message: well below the host's limit, and small enough to show progress."""

_VALUES = 20_000
"""JSON values of turns that are sent in one message. A host takes more than twice as many."""


async def export_session(client: Client, uri: str, progress: Progress, *, page: int = _PAGE) -> dict[str, Any]:
    """A session as a document that `import` takes. Turns that still run are left out."""
    # Imported here: lists of sessions need no module of the host.
    from ahpkit.host.sessions.session_import import FORMAT

    async with await client.session(uri) as session:
        if not session.chats:
            # Wait until the agent has repeated the history of a conversation that it stores itself.
            await session.wait_ready()
        state = session.state
        default = state.get("defaultChat")
        entries = sorted(state["chats"], key=lambda chat: chat["resource"] != default)
        chats: list[Any] = []
        for entry in entries:
            before = sum(len(chat["turns"]) for chat in chats)
            title, turns = await _fetch(session, entry["resource"], progress, before, page)
            chats.append({"title": title, "turns": turns})
    return {"format": FORMAT, "title": state["title"], "provider": state["provider"], "chats": chats}


async def _fetch(session: Session, chat: str, progress: Progress, before: int, page: int) -> tuple[str, list[Any]]:
    """The title of a chat, and all its finished turns, the oldest first."""
    turns: list[Any] = []
    async with await session.chat(chat) as opened:
        title = opened.confirmed["title"]
        async for turn in opened.history(page=page):
            turns.append(turn)
            if len(turns) % page == 0:
                progress(f"{before + len(turns)} turns")
    progress(f"{before + len(turns)} turns")
    return title, turns[::-1]


async def import_session(client: Client, document: Any, progress: Progress, *, piece: int = _PIECE) -> dict[str, Any]:
    """Create a session from a document. Returns its URI in `session` and its agent in `provider`. Raises
    `InvalidParams`."""
    from ahpkit.host.sessions.session_import import EXTENSION, check_export

    check_export(document)
    total = sum(len(chat["turns"]) for chat in document["chats"])
    staged = 0
    if total:
        for chat, turns in pieces(document, piece):
            staged += len(turns)
            await client.extension_request(f"x-{EXTENSION}/stage", {"chat": chat, "turns": turns})
            progress(f"{staged} of {total} turns")
    bare: dict[str, Any] = {**document, "chats": [{"title": chat["title"], "turns": []} for chat in document["chats"]]}
    return await client.extension_request(f"x-{EXTENSION}/import", {"document": bare, "staged": staged})


def pieces(document: Mapping[str, Any], size: int) -> Iterator[tuple[int, list[Any]]]:
    """The turns of a document in pieces, each with the number of its chat. A piece has about `size` bytes and not too
    many values. A turn is never cut."""
    for number, chat in enumerate(document["chats"]):
        piece: list[Any] = []
        bytes_left, values_left = size, _VALUES
        for turn in chat["turns"]:
            length, values = len(encode(turn)), _count(turn)
            if piece and (length > bytes_left or values > values_left):
                yield number, piece
                piece, bytes_left, values_left = [], size, _VALUES
            piece.append(turn)
            bytes_left -= length
            values_left -= values
        if piece:
            yield number, piece


def _count(value: Any) -> int:
    """The number of JSON values in a value."""
    if isinstance(value, dict):
        return 1 + sum(map(_count, cast("dict[str, Any]", value).values()))
    return 1 + sum(map(_count, cast("list[Any]", value))) if isinstance(value, list) else 1


HIDDEN = "[removed]"

_SHAPES = re.compile(
    r"""
    -----BEGIN[ A-Z]*PRIVATE\ KEY-----.*?(?:-----END[ A-Z]*PRIVATE\ KEY-----|\Z)
    | \b(?:sk|pk|rk)-[A-Za-z0-9_-]{16,}                 # model providers
    | \b[sr]k_(?:live|test)_[A-Za-z0-9]{16,} | \bwhsec_[A-Za-z0-9]{16,}   # payment
    | \bgh[opsur]_[A-Za-z0-9]{20,} | \bgithub_pat_[A-Za-z0-9_]{20,} | \bglpat-[A-Za-z0-9_-]{16,}
    | \bAKIA[0-9A-Z]{16}\b | \bASIA[0-9A-Z]{16}\b
    | \bAIza[0-9A-Za-z_-]{30,}
    | \bxox[abprs]-[A-Za-z0-9-]{10,} | \bxapp-[A-Za-z0-9-]{10,} | (?<=hooks\.slack\.com/services/)[\w/]{10,}
    | \bSG\.[\w-]{16,}\.[\w-]{16,} | \bya29\.[\w-]{16,} | \bAGE-SECRET-KEY-1[0-9A-Z]{20,}
    | \b(?:hf|npm|gsk|r8|shpat|do[opr]_v1)_[A-Za-z0-9]{20,} | \b(?:pypi|xai|nvapi|pplx|tvly)-[A-Za-z0-9_-]{20,}
    | \bhv[sbr]\.[\w-]{20,} | \bdapi[0-9a-f]{32} | \b\d{8,10}:AA[\w-]{30,}   # vaults, tables, bots
    | (?<=/api/webhooks/)\d+/[\w-]{20,}
    | \beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*   # JSON web tokens
    | (?<=://)[^\s/:@]*:[^\s/@]+(?=@)                    # name:password in a URL
    """,
    re.VERBOSE | re.DOTALL,
)

_KEYS = "api|access|account|auth|encryption|master|private|signing"

_WORDS = rf"(?:passwords?|passwd|passphrase|secret|token|(?:{_KEYS})[_-]?key|credential)"

_NAMED = re.compile(
    rf"""(?P<name>["']?\b[\w.-]{{0,80}}{_WORDS}[\w.-]{{0,80}}\\*["']?\s*[:=]\s*
        | \s--?[\w-]{{0,80}}{_WORDS}[\w-]{{0,80}}[ ]+(?!-)  # an option and its value
        | \blogin\s+\S{{1,200}}\s+password\s+                   # .netrc
        | \bcurl\b[^\n]{{0,300}}?\s(?:-u|--user)[ =]["']?[^\s:"']{{1,200}}:
        | \b(?:mysql|mysqldump|mysqladmin|sshpass|docker\s+login|podman\s+login)\b[^\n]{{0,300}}?\s-p[ ]?
        | -pass(?:in|out)?\s+pass:                               # openssl
        | <[\w.:-]{{0,80}}{_WORDS}[\w.:-]{{0,80}}>
        | [?&](?:sig|signature|x-amz-signature)=
        | \bauthorization["']?\s*[:=]\s*["']?(?:bearer|basic)\s+|\bbearer\s+)
        (?P<quote>\\*["'])?(?P<value>(?(quote)(?:(?!(?P=quote))[^\n]){{4,}}|[^\s"',;]{{6,}}))
    | (?P<cookies>\bcookie["']?\s*:\s*["']?)[^\s=;"']+=[^\r\n"']+""",
    re.VERBOSE | re.IGNORECASE,
)

_SECRET_NAME = re.compile(rf"{_WORDS}|^(?:set-)?cookie$|^authorization$", re.IGNORECASE)


class Redactor:
    """Removes secrets from values, and counts them."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        known = {value for name, value in environment.items() if _SECRET_NAME.search(name) and len(value) >= 8}
        self._known = sorted(known, key=len, reverse=True)
        self.removed = 0

    def clean(self, value: Any) -> Any:
        """A copy of a value in which every text is cleaned."""
        match value:
            case str():
                return self._text(value)
            case dict():
                return {key: self._entry(key, one) for key, one in cast("dict[str, Any]", value).items()}
            case list():
                return [self.clean(one) for one in cast("list[Any]", value)]
            case _:
                return value

    def _entry(self, key: str, value: Any) -> Any:
        if isinstance(value, str) and value and _SECRET_NAME.search(key):
            self.removed += 1
            return HIDDEN
        return self.clean(value)

    def _text(self, text: str) -> str:
        for known in self._known:
            self.removed += text.count(known)
            text = text.replace(known, HIDDEN)
        text, shapes = _SHAPES.subn(HIDDEN, text)
        text = _NAMED.sub(self._named, text)
        self.removed += shapes
        return text

    def _named(self, found: re.Match[str]) -> str:
        if found["value"] == HIDDEN:
            return found.group()
        self.removed += 1
        return f"{found['name'] or found['cookies']}{found['quote'] or ''}{HIDDEN}"


__all__ = ["HIDDEN", "Progress", "Redactor", "export_session", "import_session", "pieces"]
