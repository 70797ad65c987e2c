"""Keys under `_meta` that several of our packages use. AHP does not define them."""

from __future__ import annotations

OURS = "ahpkit/"
"""The prefix of all of them: other peers may not set such keys."""

OUR_PREFIXES = (OURS, "ahpkit.dev/")
"""The same, and the prefix of hints that our dialects add."""

ACP = "ahpkit/acp"
"""What an ACP agent said beyond AHP's own fields, and nothing else."""

AUTOMATIC = "ahpkit/automatic"
"""In `chat/toolCallConfirmed` and `chat/toolCallResultConfirmed`: true when a program decided, and asked no person."""

CAPABILITIES = "ahpkit/capabilities"
"""In `reconnect`: the client's capabilities again. 0.4.0 says them in `initialize` only, and a host may have been
restarted meanwhile."""

MISSED = "ahpkit/missed"
"""In `reconnect`: how the client wants to get what it missed: as "actions" wherever the log has them, or as "states".
Without it the host sends whichever is smaller."""

OPENING = "ahpkit/opening"
"""In a session's entry in lists: the slash command that it began with. A command is not a title, but it distinguishes
sessions that have none."""

SPOKEN = "ahpkit/spoken"
"""In `reconnect`: the protocol version that the client spoke before, for a host that has forgotten it."""

HIGHEST = "ahpkit/highest"
"""In `reconnect`: the highest number that the client has seen in any channel. `lastSeenServerSeq` may be lower, where
the client wants a replay to begin."""

UNSAVED_TEXT = "ahpkit/unsaved-text"
"""In a client's capabilities: it answers `resourceRead` of a `file:` URI with text that an editor has not saved yet."""

CHANGES = "ahpkit/changes"
"""In a session's `_meta`: additions, deletions and files of all its changes. Lists show it as `changes`."""

ELSEWHERE = "ahpkit/elsewhere"
"""In a session's `_meta`: the folder its client asked for, which is not on the host's machine. It works in the host's
default directory instead."""

CLIENTS = "ahpkit/clients"
"""In a host's `_meta`: its extension that lists the connected clients, and says why nothing can be stored."""

ASK_AGENTS = "ahpkit/ask-agents"
"""In `listSessions`: true starts agents that do not run, to learn which conversations they keep."""

CONFIG_META = "ahpkit/config"
"""In a session's `_meta`: a config schema learnt after creation, because no action can change `config.schema`."""

CANVASES = "ahpkit/canvases"
"""In a client's capabilities: it understands our state and actions of canvases, which are additions to the protocol."""

KEEP_TOKEN = "ahpkit/keep-token"
"""In `authenticate`: true keeps the token of an MCP server when the client leaves, until the session or the host
ends."""

RENEWAL = "ahpkit/renewal"
"""In `authenticate`: the refresh token of a login, and where and as whom it is used (`tokenEndpoint`, `refreshToken`,
`clientId`, `clientSecret`, `authMethod`). The host renews the token with it, in memory."""

TRUST = "ahpkit/trust"
"""In a hook or a server that may not run: `changed` since it was trusted, or `unknown`."""

SETTLED = "ahpkit/settled"
"""In a tool call: nobody is asked about it. A call can be denied only while it is pending, so it is shown as pending
for one action when a `guard`, a `rule` or a `setting` denies it, its `owner` does, or its `caller` gives it up."""

MODELS_LATER = "ahpkit/models-later"
"""In an agent of root state: true while its models are not known yet. They are known once a session is open."""

MORE = "ahpkit/more"
"""In an answer to `completions`: how many items it leaves out."""

NOT_LISTED = "ahpkit/notListed"
"""In a plugin of a session: lines about contents that look like components and are not listed."""

DIRECT = "ahpkit/direct"
"""In an MCP server of a session's customizations: the agent runs it, and the host does not."""

LEFT_OUT = "ahpkit/left-out"
"""In an MCP server of a session's customizations: its tools that cannot be used, each with the reason."""

TRUNCATED = "ahpkit/truncated"
"""In a tool call: true when its input is so long that only its beginning and its end are shown."""

COST = "ahpkit/cost"
"""In the usage of a turn, from its agent: what the turn cost, as a number of dollars or as `amount` and `currency`."""

__all__ = [
    "ACP",
    "ASK_AGENTS",
    "AUTOMATIC",
    "CANVASES",
    "CAPABILITIES",
    "CHANGES",
    "CLIENTS",
    "CONFIG_META",
    "COST",
    "DIRECT",
    "ELSEWHERE",
    "HIGHEST",
    "KEEP_TOKEN",
    "LEFT_OUT",
    "MISSED",
    "MODELS_LATER",
    "MORE",
    "NOT_LISTED",
    "OPENING",
    "OURS",
    "RENEWAL",
    "SETTLED",
    "SPOKEN",
    "TRUNCATED",
    "UNSAVED_TEXT",
]
