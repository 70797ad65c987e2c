"""Converts what an agent asks to questions for people, and their answers back: permissions and forms. Pure.

An agent may offer several permission options of one kind, so the answer is always the option that the person picked.
The agent itself remembers choices such as "always allow".

AHP has no place for some parts of a form: a pattern, the default of a selection, the tool call to which the form
belongs. The agent checks the answers itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeGuard, cast
from urllib.parse import urlsplit

from ahpkit.agents.acp.limits import MAX_LISTED, MAX_WORDS, cut, short
from ahpkit.agents.acp.meta import annotated
from ahpkit.agents.untrusted_json import number, obj, objects, strings, text
from ahpkit.host.agent import Confirmation, InputAnswers
from ahpkit.protocol.chat.state import ChatInputAnswer, ChatInputOption, ChatInputQuestion, ConfirmationOption
from ahpkit.protocol.common.state import JsonObject

Policy = Literal["ask", "allow", "deny"]
"""Who answers an agent's permission requests: a person, or the configuration."""

CANCELLED: JsonObject = {"outcome": {"outcome": "cancelled"}}

ANSWER_META = "ahpkit/permission-answer"
"""The key for what ACP has no field for: the reason that a person gave for a denial, and what they suggested
instead."""

_ONCE, _ALWAYS = 0, 1

_IN_WORDS = {
    "allow_once": "Allow once",
    "allow_always": "Always allow",
    "reject_once": "Deny",
    "reject_always": "Always deny",
}
"""Words for options whose name is only their id."""


def confirmation_options(options: object) -> list[ConfirmationOption]:
    """The options that clients show. An option of an unknown kind counts as a denial, so that nothing runs by
    mistake."""
    return [_option(option) for option in objects(options)[:MAX_LISTED] if text(option.get("optionId"))]


def _option(option: JsonObject) -> ConfirmationOption:
    kind = text(option.get("kind")) or ""
    name = text(option.get("name")) or option["optionId"]
    shown: ConfirmationOption = {
        "id": option["optionId"],
        "label": short(_IN_WORDS.get(kind, name) if name == option["optionId"] else name),
        "kind": "approve" if kind.startswith("allow") else "deny",
        "group": _ALWAYS if kind.endswith("_always") else _ONCE,
    }
    return annotated(shown, meta=obj(option.get("_meta")))


def outcome(options: Sequence[ConfirmationOption], answer: Confirmation) -> JsonObject:
    """The result of `session/request_permission` for a person's answer."""
    kind = "approve" if answer.approved else "deny"
    picked = [option["id"] for option in options if option["id"] == answer.option_id and option["kind"] == kind]
    chosen = picked[0] if picked else default_option(options, approved=answer.approved)
    result = CANCELLED if chosen is None else {"outcome": {"outcome": "selected", "optionId": chosen}}
    remarks = {"reason": answer.reason, "suggestion": answer.suggestion}
    remarks = {key: value for key, value in remarks.items() if value is not None}
    meta = answer.meta | ({ANSWER_META: remarks} if remarks else {})
    return result | ({"_meta": meta} if meta else {})


def default_option(options: Sequence[ConfirmationOption], *, approved: bool) -> str | None:
    """The option that a plain yes or no selects. If the agent offers it, the option that holds for this time only."""
    kind = "approve" if approved else "deny"
    fitting = [option for option in options if option["kind"] == kind]
    fitting.sort(key=lambda option: option.get("group", _ONCE))
    return fitting[0]["id"] if fitting else None


_LONGEST_URL = 8192


def web_address(url: Any) -> str:
    """The URL that a person is asked to open. Raises `ValueError` if a browser must not open it."""
    address = text(url) or ""
    try:
        parts = urlsplit(address)
        is_web = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        is_web = False
    if not is_web or len(address) > _LONGEST_URL:
        raise ValueError("url: not the address of a web page (http or https)")
    return address


def form_questions(schema: Any) -> list[ChatInputQuestion]:
    """One question per property of the requested schema, in its order."""
    required = set(strings(obj(schema).get("required")))
    properties = obj(obj(schema).get("properties"))
    shown = list(properties.items())[:MAX_LISTED]
    return [_question(name, obj(spec), required=name in required) for name, spec in shown]


def form_answer(schema: Any, given: InputAnswers) -> JsonObject:
    """The result of `elicitation/create`."""
    if given.response != "accept":
        return {"action": given.response}
    properties = obj(obj(schema).get("properties"))
    values = {name: _value(obj(spec), given.answers.get(name)) for name, spec in properties.items()}
    return {"action": "accept", "content": {name: value for name, value in values.items() if value is not None}}


def _question(name: str, spec: JsonObject, *, required: bool) -> ChatInputQuestion:
    title = text(spec.get("title"))
    asked: JsonObject = {"id": name, "message": cut(text(spec.get("description")) or title or name, MAX_WORDS)}
    asked |= {"title": short(title)} if title else {}
    asked |= {"required": True} if required else {}
    kind = _kind(spec)
    return asked | {"kind": kind} | _DETAILS[kind](spec)  # pyright: ignore[reportReturnType]  # The kind tells which.


def _kind(spec: JsonObject) -> str:
    if _options(spec):
        return "multi-select" if spec.get("type") == "array" else "single-select"
    kind = spec.get("type")
    return kind if kind in ("number", "integer", "boolean") else "text"


def _text_details(spec: JsonObject) -> JsonObject:
    return _present(
        format=text(spec.get("format")),
        min=number(spec.get("minLength")),
        max=number(spec.get("maxLength")),
        defaultValue=text(spec.get("default")),
    )


def _number_details(spec: JsonObject) -> JsonObject:
    bounds = {"min": number(spec.get("minimum")), "max": number(spec.get("maximum"))}
    return _present(**bounds, defaultValue=number(spec.get("default")))


def _boolean_details(spec: JsonObject) -> JsonObject:
    default = spec.get("default")
    return {"defaultValue": default} if isinstance(default, bool) else {}


def _select_details(spec: JsonObject) -> JsonObject:
    return {"options": _options(spec)}


def _multi_details(spec: JsonObject) -> JsonObject:
    bounds = {"min": number(spec.get("minItems")), "max": number(spec.get("maxItems"))}
    return {"options": _options(spec)} | _present(**bounds)


_DETAILS: Mapping[str, Callable[[JsonObject], JsonObject]] = {
    "text": _text_details,
    "number": _number_details,
    "integer": _number_details,
    "boolean": _boolean_details,
    "single-select": _select_details,
    "multi-select": _multi_details,
}


def _options(spec: JsonObject) -> list[ChatInputOption]:
    """The choices, from any of the places where a schema may have them: `enum`, titled by `enumNames`, titled
    `oneOf`/`anyOf`, or inside `items`."""
    source = obj(spec.get("items")) if spec.get("type") == "array" else spec
    titled = objects(source.get("oneOf") or source.get("anyOf"))
    if titled:
        return [_titled(option) for option in titled[:MAX_LISTED] if isinstance(option.get("const"), str)]
    values, names = source.get("enum"), source.get("enumNames")
    titles = dict(zip(values, names, strict=False)) if _are_texts(values) and _are_texts(names) else {}
    return [{"id": value, "label": short(titles.get(value) or value)} for value in strings(values)[:MAX_LISTED]]


def _are_texts(values: Any) -> TypeGuard[list[str]]:
    return isinstance(values, list) and len(strings(values)) == len(cast("list[Any]", values))


def _titled(option: JsonObject) -> ChatInputOption:
    shown: ChatInputOption = {"id": option["const"], "label": short(text(option.get("title")) or option["const"])}
    description = text(option.get("description"))
    if description:
        shown["description"] = short(description)
    return shown


def _value(spec: JsonObject, given: ChatInputAnswer | None) -> Any:
    if given is None or given["state"] == "skipped":
        return None
    value = given["value"]
    free = value.get("freeformValues") or []
    if spec.get("type") == "array":
        chosen = value["value"]
        return [*(chosen if isinstance(chosen, list) else [chosen]), *free]
    if value["kind"] == "selected" and free and not value["value"]:
        return free[0]
    if spec.get("type") == "integer" and isinstance(value["value"], float):
        return int(value["value"])
    return value["value"]


def _present(**fields: Any) -> JsonObject:
    return {key: value for key, value in fields.items() if value is not None}


__all__ = ["ANSWER_META", "CANCELLED", "Policy", "confirmation_options", "form_answer", "form_questions", "outcome"]
