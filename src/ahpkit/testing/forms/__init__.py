"""The forms in which models are asked and answer over HTTP, one module for each maker."""

from ahpkit.testing.forms.anthropic import MESSAGES
from ahpkit.testing.forms.common import Form
from ahpkit.testing.forms.gemini import GENERATE
from ahpkit.testing.forms.openai import CHAT, RESPONSES

_BY_END = {
    "/chat/completions": CHAT,
    "/responses": RESPONSES,
    "/messages": MESSAGES,
    ":generateContent": GENERATE,
    ":streamGenerateContent": GENERATE,
}


def form_of(path: str) -> Form | None:
    """The form that is spoken at a path."""
    return next((form for end, form in _BY_END.items() if path.endswith(end)), None)


__all__ = ["form_of"]
