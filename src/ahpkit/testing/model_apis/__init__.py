"""The HTTP APIs of several makers of models, one module for each maker."""

from ahpkit.testing.model_apis.anthropic import MESSAGES
from ahpkit.testing.model_apis.common import ModelApi
from ahpkit.testing.model_apis.gemini import GENERATE
from ahpkit.testing.model_apis.openai import CHAT, RESPONSES

_BY_END = {
    "/chat/completions": CHAT,
    "/responses": RESPONSES,
    "/messages": MESSAGES,
    ":generateContent": GENERATE,
    ":streamGenerateContent": GENERATE,
}


def api_at(path: str) -> ModelApi | None:
    """The API that is spoken at a path."""
    return next((api for end, api in _BY_END.items() if path.endswith(end)), None)


__all__ = ["api_at"]
