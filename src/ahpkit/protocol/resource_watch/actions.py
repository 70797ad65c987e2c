from __future__ import annotations

from typing import Literal, TypedDict

from ahpkit.protocol.common.state import JsonObject


class ResourceWatchChangedAction(TypedDict):
    type: Literal["resourceWatch/changed"]
    changes: JsonObject  # INLINE {"items": ["str", true]}
