"""What clients may do to a chat: start, steer and end turns, decide about tool calls, answer questions. Pure rules.

An answer to a question of the agent is checked for its kind and the limits of the question. No answer may be missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ahpkit.host.limits import MAX_QUEUED_MESSAGES
from ahpkit.host.policy.proposed_action import ProposedAction, Rule, TurnIds, allow, find, repeated
from ahpkit.host.policy.session import check_agent, check_directories, check_model
from ahpkit.protocol.chat.actions import (
    ChatDraftChangedAction,
    ChatInputAnswerChangedAction,
    ChatInputCompletedAction,
    ChatPendingMessageRemovedAction,
    ChatPendingMessageSetAction,
    ChatToolCallCompleteAction,
    ChatToolCallConfirmedAction,
    ChatTruncatedAction,
    ChatTurnCancelledAction,
    ChatTurnResumeAction,
    ChatTurnStartedAction,
    ChatWorkingDirectoryRemovedAction,
    ChatWorkingDirectorySetAction,
    ToolCallActionBase,
)
from ahpkit.protocol.chat.messages import (
    ANSWER_KINDS,
    ChatInputAnswer,
    ChatInputAnswerValue,
    ChatInputMultiSelectQuestion,
    ChatInputNumberAnswerValue,
    ChatInputNumberQuestion,
    ChatInputQuestion,
    ChatInputSelectedAnswerValue,
    ChatInputSelectedManyAnswerValue,
    ChatInputSingleSelectQuestion,
    ChatInputTextAnswerValue,
    ChatInputTextQuestion,
)
from ahpkit.protocol.chat.state import ActiveTurn, ChatInputRequest, ChatState, Message, ToolCallState
from ahpkit.protocol.chat.turns import find_tool_call, is_resumable, open_request
from ahpkit.protocol.common.reducing import is_duration, is_time
from ahpkit.protocol.json_schema import find_problem

_MessageAction = ChatTurnStartedAction | ChatPendingMessageSetAction
_DirectoryAction = ChatWorkingDirectorySetAction | ChatWorkingDirectoryRemovedAction


def _check_message(proposed: ProposedAction[_MessageAction, ChatState]) -> str | None:
    """Why a message may not be sent to this chat, now or later."""
    # A session that is still being created takes messages: they run once it is ready.
    if proposed.session is not None and proposed.session["lifecycle"] == "failed":
        return "the session could not be created"
    message = proposed.action["message"]
    return _check_origin(message) or _check_writable(proposed) or _check_choices(proposed, message)


def _check_choices(proposed: ProposedAction[_MessageAction, ChatState], message: Message) -> str | None:
    """Why a message cannot use the model or the custom agent that it names."""
    session = proposed.session
    if session is None:
        return None
    model, agent = message.get("model"), message.get("agent")
    if model is not None and (reason := check_model(proposed.root, session["provider"], model["id"])):
        return reason
    if agent is None or session["lifecycle"] != "ready":
        return None  # Its customizations have to be read before its agents are known.
    return check_agent(session, agent["uri"])


def _check_origin(message: Message) -> str | None:
    kind = message["origin"]["kind"]
    return None if kind == "user" else f"a client sends messages of kind user, not {kind}"


def _check_writable(proposed: ProposedAction[object, ChatState]) -> str | None:
    interactivity = proposed.state.get("interactivity", "full")
    return None if interactivity == "full" else f"this chat is {interactivity}"


def _turn_started(proposed: ProposedAction[ChatTurnStartedAction, ChatState]) -> str | None:
    state, turn_id = proposed.state, proposed.action["turnId"]
    if (reason := _check_message(proposed)) is not None:
        return reason
    if "activeTurn" in state:
        return f"turn {state['activeTurn']['id']!r} is still running; queue the message, or cancel the turn first"
    if not turn_id:
        return "a turn needs an id"
    if not is_time(proposed.action["startedAt"]):
        return "startedAt: a time such as 2026-11-15T12:00:00.000Z is expected"
    if _has_turn(proposed, turn_id):
        return f"there is already a turn with id {turn_id!r}"
    queued = proposed.action.get("queuedMessageId")
    if queued is not None and not find(state.get("queuedMessages"), "id", queued):
        return f"there is no queued message {queued!r}"
    return None


def _has_turn(proposed: ProposedAction[object, ChatState], turn_id: str) -> bool:
    """Whether the chat has a finished turn with this id."""
    return turn_id in (proposed.turn_ids or TurnIds()).of(proposed.channel, proposed.state["turns"])


def _turn_resume(proposed: ProposedAction[ChatTurnResumeAction, ChatState]) -> str | None:
    """Only the last turn can be resumed, and only if its error says so."""
    state, turn_id = proposed.state, proposed.action["turnId"]
    if "activeTurn" in state:
        return f"turn {state['activeTurn']['id']!r} is still running"
    last = state["turns"][-1] if state["turns"] else None
    if last is None or last["id"] != turn_id:
        return f"turn {turn_id!r} is not the last one"
    if not is_resumable(last):
        return f"turn {turn_id!r} cannot be resumed"
    return _check_writable(proposed)


def _draft_changed(proposed: ProposedAction[ChatDraftChangedAction, ChatState]) -> str | None:
    draft = proposed.action.get("draft")
    return None if draft is None else _check_origin(draft)


def _working_directory(proposed: ProposedAction[_DirectoryAction, ChatState]) -> str | None:
    """A chat works in directories of its session."""
    session = proposed.session
    if session is None:
        return "this chat has no session"
    if (reason := check_directories(proposed.root, session)) is not None:
        return reason
    known = session.get("workingDirectories", [])
    directory = proposed.action["directory"]
    return None if directory in known else f"{directory} is not a directory of the session"


def _turn_cancelled(proposed: ProposedAction[ChatTurnCancelledAction, ChatState]) -> str | None:
    active = proposed.state.get("activeTurn")
    if active is None:
        return "no turn is running"
    if not is_duration(proposed.action["duration"]):
        return "duration: a number of milliseconds is expected"
    return _check_turn(proposed, active)


def _truncated(proposed: ProposedAction[ChatTruncatedAction, ChatState]) -> str | None:
    turn_id = proposed.action.get("turnId")
    if turn_id is not None and not _has_turn(proposed, turn_id):
        return f"there is no finished turn {turn_id!r}"
    return _check_writable(proposed)


def _pending_message_set(proposed: ProposedAction[ChatPendingMessageSetAction, ChatState]) -> str | None:
    action, queue = proposed.action, proposed.state.get("queuedMessages", [])
    if not action["id"]:
        return "a pending message needs an id"
    if action["kind"] == "queued" and len(queue) >= MAX_QUEUED_MESSAGES and not find(queue, "id", action["id"]):
        return f"{len(queue)} messages are queued, which is the limit of a chat; wait, or remove one first"
    return _check_message(proposed)


def _pending_message_removed(proposed: ProposedAction[ChatPendingMessageRemovedAction, ChatState]) -> str | None:
    kind, message_id = proposed.action["kind"], proposed.action["id"]
    steering = proposed.state.get("steeringMessage")
    there = proposed.state.get("queuedMessages") if kind == "queued" else [steering] if steering else []
    return None if find(there, "id", message_id) else f"there is no {kind} message {message_id!r}"


def _check_turn(
    proposed: ProposedAction[ChatTurnCancelledAction | ToolCallActionBase, ChatState], active: ActiveTurn
) -> str | None:
    turn_id = proposed.action["turnId"]
    return None if active["id"] == turn_id else f"turn {turn_id!r} is not the one that is running"


def _tool_call(proposed: ProposedAction[ToolCallActionBase, ChatState]) -> ToolCallState | str:
    """The tool call the action is about, or why there is none."""
    active = proposed.state.get("activeTurn")
    if active is None:
        return "no turn is running"
    if (reason := _check_turn(proposed, active)) is not None:
        return reason
    call_id = proposed.action["toolCallId"]
    return find_tool_call(active, call_id) or f"the running turn has no tool call {call_id!r}"


def _check_status(call: ToolCallState, wanted: str) -> str | None:
    if call["status"] == wanted:
        return None
    return f"tool call {call['toolCallId']!r} is {call['status']}, not {wanted}"


def _tool_call_confirmed(proposed: ProposedAction[ChatToolCallConfirmedAction, ChatState]) -> str | None:
    call = _tool_call(proposed)
    if isinstance(call, str):
        return call
    if (
        call["status"] == "running"
        and not proposed.action["approved"]
        and _check_owner(call, proposed.client_id) is None
    ):
        return None  # A client that no longer has its tool must be able to deny the call at any time.
    return _check_status(call, "pending-confirmation") or _check_decision(call, proposed.action)


def _check_decision(call: ToolCallState, action: ChatToolCallConfirmedAction) -> str | None:
    """Check a decision about a tool call: the option was offered and agrees with `approved`, and input was edited only
    if it is editable."""
    option_id = action.get("selectedOptionId")
    if option_id is not None:
        option = find(call.get("options"), "id", option_id)
        if option is None:
            return f"{option_id!r} is not one of the options offered for this tool call"
        if option["kind"] != ("approve" if action["approved"] else "deny"):
            return f"option {option_id!r} means {option['kind']}, which contradicts `approved`"
    if "editedToolInput" in action and not call.get("editable"):
        return "the input of this tool call cannot be edited"
    if "editedToolInput" in action and not isinstance(call.get("toolInput"), str):
        return "the input of this tool call is missing or a reference, so it cannot be edited"
    return None


def _tool_call_result_confirmed(proposed: ProposedAction[ToolCallActionBase, ChatState]) -> str | None:
    call = _tool_call(proposed)
    return call if isinstance(call, str) else _check_status(call, "pending-result-confirmation")


def _executing_tool_call(proposed: ProposedAction[ToolCallActionBase, ChatState]) -> str | None:
    """Only the client that runs the tool reports progress and result, and only while the call runs, so that no approval
    is bypassed."""
    call = _tool_call(proposed)
    if isinstance(call, str):
        return call
    return _check_owner(call, proposed.client_id) or _check_status(call, "running")


def _tool_call_complete(proposed: ProposedAction[ChatToolCallCompleteAction, ChatState]) -> str | None:
    """A call that waits for a sign-in may also be ended as a failure, by someone who does not want to sign in."""
    call = _tool_call(proposed)
    if isinstance(call, str) or call["status"] != "auth-required":
        return _executing_tool_call(proposed)
    if proposed.action["result"].get("success"):
        return f"tool call {call['toolCallId']!r} waits for a sign-in: it can only be ended as a failure"
    return None


def _check_owner(call: ToolCallState, client_id: str) -> str | None:
    contributor = call.get("contributor")
    if contributor is None or contributor["kind"] != "client":
        return f"tool call {call['toolCallId']!r} is run by the host"
    if contributor["clientId"] != client_id:
        return f"tool call {call['toolCallId']!r} belongs to another client"
    return None


def _input_answer_changed(proposed: ProposedAction[ChatInputAnswerChangedAction, ChatState]) -> str | None:
    request = _input_request(proposed)
    if isinstance(request, str):
        return request
    question = find(request.get("questions"), "id", proposed.action["questionId"])
    if question is None:
        return _no_question(proposed.action["questionId"])
    return check_draft(question, proposed.action.get("answer"))


def _input_completed(proposed: ProposedAction[ChatInputCompletedAction, ChatState]) -> str | None:
    request = _input_request(proposed)
    if isinstance(request, str):
        return request
    if proposed.action["response"] != "accept":
        return None
    questions = request.get("questions", [])
    given = proposed.action.get("answers", {})
    unknown = given.keys() - {question["id"] for question in questions}
    if unknown:
        return _no_question(min(unknown))
    return check_accepted(questions, {**request.get("answers", {}), **given})


def _input_request(
    proposed: ProposedAction[ChatInputAnswerChangedAction | ChatInputCompletedAction, ChatState],
) -> ChatInputRequest | str:
    request_id = proposed.action["requestId"]
    return open_request(proposed.state, request_id) or f"there is no open input request {request_id!r}"


def _no_question(question_id: str) -> str:
    return f"the input request has no question {question_id!r}"


RULES: Mapping[str, Rule] = {
    "chat/turnStarted": _turn_started,
    "chat/turnCancelled": _turn_cancelled,
    "chat/turnResume": _turn_resume,
    "chat/draftChanged": _draft_changed,
    "chat/isReadChanged": allow,
    "chat/isArchivedChanged": allow,
    "chat/workingDirectorySet": _working_directory,
    "chat/workingDirectoryRemoved": _working_directory,
    "chat/truncated": _truncated,
    "chat/pendingMessageSet": _pending_message_set,
    "chat/pendingMessageRemoved": _pending_message_removed,
    # An id that is no longer queued is skipped: the host may have taken it meanwhile.
    "chat/queuedMessagesReordered": allow,
    "chat/toolCallConfirmed": _tool_call_confirmed,
    "chat/toolCallResultConfirmed": _tool_call_result_confirmed,
    "chat/toolCallComplete": _tool_call_complete,
    "chat/toolCallContentChanged": _executing_tool_call,
    "chat/inputAnswerChanged": _input_answer_changed,
    "chat/inputCompleted": _input_completed,
}


_STATES = ("draft", "submitted", "skipped")

_SKIPPED: ChatInputAnswer = {"state": "skipped"}


def check_draft(question: ChatInputQuestion, answer: ChatInputAnswer | None) -> str | None:
    """Check one answer. A draft must have the right kind, but may break limits. A submitted answer must also keep the
    limits."""
    if answer is None:
        return None
    return _check_answer(question, answer, complete=answer["state"] == "submitted")


def check_accepted(questions: Sequence[ChatInputQuestion], answers: Mapping[str, ChatInputAnswer]) -> str | None:
    """Check all answers of a request that is being accepted. A required question needs a submitted answer. A draft is
    not enough."""
    for question in questions:
        answer = answers.get(question["id"], _SKIPPED)
        if reason := _check_answer(question, answer, complete=True):
            return reason
        if question.get("required") and (answer["state"] != "submitted" or _is_blank(answer)):
            return f"question {question['id']!r} must be answered"
    return None


def _check_answer(question: ChatInputQuestion, answer: ChatInputAnswer, *, complete: bool) -> str | None:
    if answer["state"] not in _STATES:
        return f"an answer is {', '.join(_STATES)}; not {answer['state']!r}"
    if answer["state"] == "skipped":
        return None
    reason = _check_kind(question, answer["value"])
    return reason or (_check_limits(question, answer["value"]) if complete and not _is_blank(answer) else None)


def _check_kind(question: ChatInputQuestion, value: ChatInputAnswerValue) -> str | None:
    wanted = ANSWER_KINDS.get(question["kind"])
    if wanted is not None and value["kind"] != wanted:
        return f"question {question['id']!r} is answered with a value of kind {wanted}, not {value['kind']}"
    return None


def _is_blank(answer: ChatInputAnswer) -> bool:
    """Whether nothing was entered or picked. Such an answer is not enough for a required question."""
    value = answer.get("value")
    return value is None or (value.get("value", "") in ("", []) and not value.get("freeformValues"))


def _check_limits(question: ChatInputQuestion, value: ChatInputAnswerValue) -> str | None:
    check = _LIMITS.get(question["kind"])
    problem = check(question, value) if check else None
    return f"the answer to question {question['id']!r} {problem}" if problem else None


def _check_text(question: ChatInputTextQuestion, value: ChatInputTextAnswerValue) -> str | None:
    text = value["value"]
    return _check_range(question, len(text), "characters") or _check_format(question.get("format"), text)


def _check_number(question: ChatInputNumberQuestion, value: ChatInputNumberAnswerValue) -> str | None:
    number = value["value"]
    if question["kind"] == "integer" and number != int(number):
        return f"must be a whole number, not {number}"
    return _check_range(question, number, "")


def _check_selected(question: ChatInputSingleSelectQuestion, value: ChatInputSelectedAnswerValue) -> str | None:
    picked = [value["value"]] if value["value"] else []
    return _check_options(question, value, picked, question.get("allowFreeformInput", False))


def _check_selected_many(question: ChatInputMultiSelectQuestion, value: ChatInputSelectedManyAnswerValue) -> str | None:
    picked = value["value"]
    count = len(picked) + len(value.get("freeformValues", ()))
    return _check_options(question, value, picked, False) or _check_range(question, count, "selections")


def _check_options(
    question: ChatInputSingleSelectQuestion | ChatInputMultiSelectQuestion,
    value: ChatInputSelectedAnswerValue | ChatInputSelectedManyAnswerValue,
    picked: list[str],
    free: bool,
) -> str | None:
    if value.get("freeformValues") and not question.get("allowFreeformInput"):
        return "must be picked from the options, free text is not allowed"
    if (twice := repeated(picked)) is not None:
        return f"picks option {twice!r} twice"
    offered = {option["id"] for option in question["options"]}
    unknown = next((option for option in picked if option not in offered and not free), None)
    return None if unknown is None else f"picks {unknown!r}, which is not one of the options"


def _check_range(
    question: ChatInputTextQuestion | ChatInputNumberQuestion | ChatInputMultiSelectQuestion, amount: float, unit: str
) -> str | None:
    low, high = question.get("min"), question.get("max")
    if low is not None and amount < low:
        return f"must be at least {low} {unit}".rstrip()
    if high is not None and amount > high:
        return f"must be at most {high} {unit}".rstrip()
    return None


def _check_format(name: str | None, text: str) -> str | None:
    """Check the format of a text. Formats that JSON Schema does not have are only hints for display."""
    if name is None or not text:
        return None
    return f"must be a valid {name}" if find_problem({"format": name}, text) else None


_LIMITS: dict[str, Callable[[Any, Any], str | None]] = {
    "text": _check_text,
    "number": _check_number,
    "integer": _check_number,
    "single-select": _check_selected,
    "multi-select": _check_selected_many,
}


__all__ = ["RULES", "check_accepted", "check_draft"]
