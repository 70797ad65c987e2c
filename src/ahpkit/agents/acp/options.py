"""Converts modes, models and options of an ACP session to session configuration, and changes back to ACP calls.

Pure. Agents report these in up to three ways: `configOptions`, and the older `modes` and `models`. If two ways say the
same, the newer one is used.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from ahpkit.agents.acp.limits import MAX_CHOICES, MAX_LISTED, MAX_NAME, short
from ahpkit.agents.acp.meta import upward, wrapped
from ahpkit.agents.untrusted_json import obj, objects, text
from ahpkit.protocol.common.state import JsonObject, ModelSelection
from ahpkit.protocol.root import SessionModelInfo
from ahpkit.protocol.session.state import SessionConfigPropertySchema, SessionConfigSchema

MODE = "mode"
"""The property under which the older `modes` are shown."""
_FREE = frozenset(
    {
        *("auto", "autopilot", "bypasspermissions", "bypass", "dontask", "full", "fullaccess", "dangerfullaccess"),
        *("yolo", "allowall", "autoapprove", "acceptedits", "autoedit", "unrestricted"),
    }
)
"""Modes in which known agents run all tools, or all edits, without asking. They are recognised by the letters of their
ids."""


@dataclass(frozen=True, slots=True)
class Change:
    """A request that sets one option to the wanted value. The sender adds `sessionId`."""

    method: str
    params: JsonObject


class SessionOptions:
    """The options as the agent last reported them."""

    def __init__(self) -> None:
        self._options: list[JsonObject] = []
        self._modes: JsonObject = {}
        self._models: JsonObject = {}

    def take(self, reported: JsonObject) -> None:
        """Take the options from a result of `session/new|load|resume|set_config_option` or from an update."""
        if isinstance(reported.get("configOptions"), list):
            self._options = list(_bounded(_named(objects(reported["configOptions"]), "id")))
        if modes := obj(reported.get("modes")):
            self._modes = modes | {"availableModes": _named(objects(modes.get("availableModes")), "id")}
        if models := obj(reported.get("models")):
            self._models = models | {"availableModels": _named(objects(models.get("availableModels")), "modelId")}

    def mode_changed(self, mode: Any) -> None:
        """Take a `current_mode_update`."""
        self._modes["currentModeId"] = mode
        shown = self._mode_option
        self._options = [option | {"currentValue": mode} if option is shown else option for option in self._options]

    # The options as clients see them.

    @property
    def schema(self) -> SessionConfigSchema:
        properties = {option["id"]: _property(option) for option in self._options}
        if self._shows_modes:
            properties[MODE] = _mode_property(objects(self._modes.get("availableModes")))
        return {"type": "object", "properties": properties}

    @property
    def values(self) -> JsonObject:
        values = {option["id"]: option.get("currentValue") for option in self._options}
        if self._shows_modes:
            values[MODE] = self._modes.get("currentModeId")
        return {key: value for key, value in values.items() if isinstance(value, bool) or text(value) is not None}

    def models(self, provider: str) -> list[SessionModelInfo]:
        option = self._model_option
        if option is not None:
            return [_model(provider, choice, id_key="value") for choice in _choices(option)]
        return [_model(provider, model, id_key="modelId") for model in objects(self._models.get("availableModels"))]

    @property
    def model(self) -> str | None:
        """The id of the model that is used now."""
        option = self._model_option
        return text(self._models.get("currentModelId") if option is None else option.get("currentValue"))

    # Requests to the agent.

    def changes(self, *, model: ModelSelection | None, config: Mapping[str, Any]) -> list[Change]:
        """The requests that set the agent's options to the wanted values. Options that the agent does not have are left
        out."""
        wanted = {**config, **((model or {}).get("config") or {})}
        option = self._model_option
        if model is not None and option is not None:
            wanted[option["id"]] = model["id"]
        changes = [change for option in self._options if (change := _option_change(option, wanted)) is not None]
        return [*changes, *self._mode_change(wanted), *self._model_change(model)]

    def _mode_change(self, wanted: Mapping[str, Any]) -> list[Change]:
        mode = wanted.get(MODE)
        known = {entry.get("id") for entry in objects(self._modes.get("availableModes"))}
        if not self._shows_modes or mode not in known or mode == self._modes.get("currentModeId"):
            return []
        return [Change("session/set_mode", {"modeId": mode})]

    def _model_change(self, model: ModelSelection | None) -> list[Change]:
        known = {entry.get("modelId") for entry in objects(self._models.get("availableModels"))}
        if model is None or self._model_option is not None or model["id"] not in known:
            return []
        if model["id"] == self._models.get("currentModelId"):
            return []
        return [Change("session/set_model", {"modelId": model["id"]})]

    def changed(self, change: Change) -> None:
        """Record a change that the agent accepted with an answer that does not list the options."""
        if change.method == "session/set_mode":
            self.mode_changed(change.params["modeId"])
        elif change.method == "session/set_model":
            self._models["currentModelId"] = change.params["modelId"]

    @property
    def free_mode(self) -> str | None:
        """The name of the present mode if the agent runs its tools without asking in it. None also if this is not
        known."""
        option = self._mode_option
        mode = option.get("currentValue") if option is not None else self._modes.get("currentModeId")
        choices = _choices(option) if option is not None else objects(self._modes.get("availableModes"))
        if not isinstance(mode, str) or re.sub(r"[^a-z]", "", mode.lower()) not in _FREE:
            return None
        names = (text(one.get("name")) for one in choices if mode in (one.get("value"), one.get("id")))
        return short(next((name for name in names if name), mode))

    @property
    def _shows_modes(self) -> bool:
        return bool(objects(self._modes.get("availableModes"))) and self._mode_option is None

    @property
    def _mode_option(self) -> JsonObject | None:
        """The option that corresponds to the older `modes`: it has that category, or the same choices."""
        modes = {mode.get("id") for mode in objects(self._modes.get("availableModes"))}
        named = [option for option in self._options if option.get("category") == "mode"]
        alike = [
            option for option in self._options if modes and {entry["value"] for entry in _choices(option)} == modes
        ]
        return next(iter([*named, *alike]), None)

    @property
    def _model_option(self) -> JsonObject | None:
        """The option that selects the model. Other options of that category may narrow the choice, for example to one
        maker."""
        options = [option for option in self._options if option.get("category") == "model"]
        return min(options, key=lambda option: "model" not in option["id"].lower(), default=None)


def _named(entries: Iterable[JsonObject], key: str) -> list[JsonObject]:
    """The entries that have an id, cut to the number and length that can be shown."""
    return list(islice((one for one in entries if 0 < len(text(one.get(key)) or "") < MAX_NAME), MAX_LISTED))


def _bounded(options: Iterable[JsonObject]) -> Iterator[JsonObject]:
    """The options with their choices, without groups. Choices beyond `MAX_CHOICES` in all are left out."""
    left = MAX_CHOICES
    for option in options:
        choices = _choices(option)[:left] if left else []
        if left or not option.get("options"):
            left -= len(choices)
            yield option | {"options": choices}


def _property(option: JsonObject) -> SessionConfigPropertySchema:
    shown: SessionConfigPropertySchema = {
        "type": "boolean" if option.get("type") == "boolean" else "string",
        "title": short(text(option.get("name")) or option["id"]),
        "sessionMutable": True,
    }
    if description := text(option.get("description")):
        shown["description"] = short(description)
    if choices := _choices(option):
        shown["enum"] = [choice["value"] for choice in choices]
        shown["enumLabels"] = [short(text(choice.get("name")) or choice["value"]) for choice in choices]
        shown["enumDescriptions"] = [short(text(choice.get("description")) or "") for choice in choices]
    return shown


def _mode_property(modes: list[JsonObject]) -> SessionConfigPropertySchema:
    choices = [mode | {"value": mode.get("id")} for mode in modes]
    return _property({"id": MODE, "name": "Mode", "type": "select", "options": choices})


def _choices(option: JsonObject) -> list[JsonObject]:
    """The selectable values, with groups flattened."""
    entries = objects(option.get("options"))
    groups = (objects(entry["options"]) if "options" in entry else [entry] for entry in entries)
    return _named(chain.from_iterable(groups), "value")


def _model(provider: str, entry: JsonObject, *, id_key: str) -> SessionModelInfo:
    shown: SessionModelInfo = {
        "id": entry[id_key],
        "provider": provider,
        "name": short(text(entry.get("name")) or entry[id_key]),
    }
    description = short(text(entry.get("description")) or "")
    if meta := wrapped({"description": description, "meta": upward(entry.get("_meta"))}):
        shown["_meta"] = meta
    return shown


def _option_change(option: JsonObject, wanted: Mapping[str, Any]) -> Change | None:
    value = wanted.get(option["id"])
    if value is None or value == option.get("currentValue"):
        return None
    if option.get("type") == "boolean":
        typed = {"type": "boolean"}
        return Change("session/set_config_option", {"configId": option["id"], "value": value, **typed})
    if value not in {choice["value"] for choice in _choices(option)}:
        return None
    return Change("session/set_config_option", {"configId": option["id"], "value": value})


__all__ = ["MODE", "Change", "SessionOptions"]
