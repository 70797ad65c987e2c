"""`ahpkit chat` as a person has it: a real terminal, a real host."""

import asyncio
import signal
import termios
from contextlib import suppress
from pathlib import Path

import pytest

from ahpkit.testing.acp_agent import scripted_command
from support.process import HostProcess, finish_cli, host_process, start_host
from support.shell import shell
from support.terminal import Terminal, terminal
from support.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="module")

APPROVAL = '/tool calculate {"expression": "6*7"}'
CHOOSE = "  choose one, or [e]dit [r]emember [l]ater: "

STUBBORN = """
import asyncio
from ahpkit.agents.python import agent


@agent(name="stubborn")
async def stubborn(turn):
    turn.text("Nothing stops me.")
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            turn.text(" Really.")
"""


PARALLEL = """
import asyncio
from ahpkit.agents import Toolbox, Turn, agent, text_of

tools = Toolbox()


@tools.tool
async def look(place: str) -> str:
    return f"seen {place}"


@agent(name="parallel")
async def parallel(turn: Turn) -> str:
    calls = [tools.call(turn, "look", f'{{"place": "{place}"}}') for place in ("left", "right")]
    return " and ".join(text_of(outcome) for outcome in await asyncio.gather(*calls))
"""


def session_of(person: Terminal) -> str:
    """The id the greeting shows."""
    return person.screen.text.partition("Session ")[2].split()[0]


async def leave(person: Terminal) -> None:
    await person.ready()
    person.type("\x04")
    assert await person.exited() == 0


# Talking.


async def test_an_answer_is_streamed_and_the_prompt_comes_back(host: HostProcess) -> None:
    async with terminal(["chat"], host.home) as person:
        await person.see("Session ", "with demo. Ctrl-C cancels a turn, Ctrl-D leaves.")
        await person.ready()
        person.enter("hello")
        await person.see("Hello! You said:", "▌ hello", "I am the demo agent (demo-small).")
        await leave(person)


async def test_text_is_shown_while_the_turn_still_runs(host: HostProcess) -> None:
    async with terminal(["chat"], host.home) as person:
        await person.ready()
        person.enter("/sleep 60")
        await person.see("Sleeping for 60 seconds.")
        assert "Awake" not in person.screen.text


async def test_reasoning_tool_calls_usage_and_failures_are_shown(host: HostProcess) -> None:
    async with terminal(["chat"], host.home) as person:
        await person.ready()
        person.enter("/think")
        await person.see("Then I answer.\nI thought about it")
        person.enter("/subagent count")
        await person.see("✓ Asked a helper", "all is well.")
        person.enter("/usage")
        await person.see("· tokens: 1 in, 12 out")
        person.enter("/fail on purpose")
        await person.see("This goes wrong now.\n✗ on purpose")
        await leave(person)


async def test_the_line_can_be_edited_and_is_remembered(host: HostProcess) -> None:
    async with terminal(["chat"], host.home, columns=20) as person:
        await person.ready()
        person.type("/usagx\x7fe")
        await person.until(lambda screen: screen.line == "> /usage")
        person.type(" and words that do not fit\x01")
        await person.until(lambda screen: screen.line == "> ")
        assert person.screen.text.endswith("> /usage and words t\nhat do not fit")
        person.type("\x0b/usage\r")
        await person.see("tokens:")
        await person.ready()
        person.type("\x1b[A")
        await person.until(lambda screen: screen.line == "> /usage")
        person.type("\x15")
        await leave(person)


async def test_a_paste_of_several_lines_is_one_message(host: HostProcess) -> None:
    async with terminal(["chat"], host.home) as person:
        await person.ready()
        assert "2004" in person.screen.modes
        person.type("\x1b[200~one\ntwo\n\x1b[201~")
        await person.until(lambda screen: screen.line == "> one⏎two")
        person.type("\r")
        await person.see("▌ one two\n")
        await leave(person)


async def test_what_is_typed_during_a_turn_is_there_afterwards(host: HostProcess) -> None:
    async with terminal(["chat"], host.home) as person:
        await person.ready()
        person.enter("/sleep 0.5")
        await person.see("Sleeping")
        person.type("next")
        await person.see("Awake again.")
        await person.until(lambda screen: screen.line == "> next")
        person.type("\x15")
        await leave(person)


# While a turn runs.


async def test_what_is_sent_during_a_turn_is_queued_and_becomes_the_next_one(host: HostProcess) -> None:
    async with terminal(["chat"], host.home) as person:
        await person.ready()
        person.enter("/sleep 3")
        await person.see("Sleeping")
        person.enter("hello")
        await person.see("queued", "Awake again.", "> hello", "Hello! You said:", "I am the demo agent")
        assert "» " not in person.screen.text
        await leave(person)


async def test_a_running_turn_is_steered(host: HostProcess) -> None:
    async with terminal(["chat"], host.home) as person:
        await person.ready()
        person.enter("/sleep 60")
        await person.see("Sleeping")
        person.enter(":steer over here")
        await person.see("You steered me", "▌ over here")
        person.interrupt()
        await person.see("✗ cancelled")
        await leave(person)


async def test_a_cancel_brings_queued_messages_back_to_the_line(host: HostProcess) -> None:
    async with terminal(["chat"], host.home) as person:
        await person.ready()
        person.enter("/sleep 60")
        await person.see("Sleeping")
        for text in ("one", "two"):
            person.enter(text)
            await person.see("queued")
        person.enter(":drop")
        person.enter(":queue")
        await person.see("1. one")
        person.interrupt()
        await person.see("✗ cancelled")
        await person.until(lambda screen: screen.line == "> one")
        person.type("\x15")
        await leave(person)


# Commands.


async def test_tab_completes_commands_of_the_agent_and_of_the_chat(host: HostProcess) -> None:
    async with terminal(["chat"], host.home) as person:
        await person.ready()
        person.type("/s\t")
        await person.see("  /stream", "  /subagent", "  /sleep")
        person.type("tr\t")
        await person.until(lambda screen: screen.line == "> /stream ")
        person.enter("2")
        await person.see("delta 1 delta 2")
        await person.ready()
        person.type(":he\t")
        await person.until(lambda screen: screen.line == "> :help")
        person.enter("")
        await person.see(":steer TEXT")
        await leave(person)


async def test_the_model_and_the_settings_are_changed_in_mid_session(host: HostProcess) -> None:
    async with terminal(["chat"], host.home) as person:
        await person.ready()
        person.enter("hello")
        await person.see("(demo-small)")
        person.enter(":model demo-large")
        person.enter(":set greeting Hola")
        await person.see("greeting = Hola")
        person.enter("again")
        await person.see("Hola! You said:", "(demo-large)")
        await leave(person)


async def test_a_fork_goes_on_in_a_chat_of_its_own(host: HostProcess) -> None:
    async with terminal(["chat"], host.home) as person:
        await person.ready()
        person.enter("first")
        await person.see("I am the demo agent")
        await person.ready()
        person.enter(":fork")
        await person.see("first: a fork of chat 1", ":chat 1 goes back", "> first", "I am the demo agent")
        await person.ready()
        person.enter("second")
        await person.see("I am the demo agent")
        await person.ready()
        person.enter(":chat 1")
        await person.see("first", ":chats lists them", "> first", "I am the demo agent")
        await person.ready()
        assert "second" not in person.screen.text.rpartition(":chat 1")[2]
        await leave(person)


async def test_a_turn_that_failed_goes_on_here_and_is_shown_to_others(host: HostProcess) -> None:
    async with terminal(["chat"], host.home) as person:
        await person.ready()
        person.enter("/stumble")
        await person.see("✗ I stumbled. Resume this turn.", ":resume goes on with it")
        await person.ready()
        async with terminal(["chat", "--session", session_of(person)], host.home) as other:
            await other.see("✗ I stumbled.")
            await other.ready()
            person.enter(":resume")
            await person.see("And here is the second half.")
            await other.see("! the turn that failed goes on", "And here is the second half.")
            await leave(other)
        await person.ready()
        person.enter(":resume")
        await person.see("✗ there is no turn to continue")
        await leave(person)


async def test_one_message_goes_to_another_model(host: HostProcess) -> None:
    async with terminal(["chat"], host.home) as person:
        await person.ready()
        person.enter(":with demo-large hello")
        await person.see("(demo-large)")
        await person.ready()
        person.enter("again")
        await person.see("(demo-small)")
        await leave(person)


async def test_a_question_beside_leaves_the_chat_as_it_is(host: HostProcess) -> None:
    async with terminal(["chat"], host.home, columns=120) as person:
        await person.ready()
        person.enter("first")
        await person.see("I am the demo agent")
        await person.ready()
        person.enter(":side what was that?")
        await person.see("This is a side chat. :chat 1 goes back", "> what was that?", "I am the demo agent")
        await person.ready()
        person.enter(":chats")
        await person.see("  1. first", "* 2. what was that?")
        person.enter(":chat 1")
        await person.see(":chats lists them", "> first", "I am the demo agent")
        await person.ready()
        assert "what was that?" not in person.screen.text.rpartition(":chat 1")[2]
        await leave(person)


async def test_a_turn_of_an_acp_agent_goes_on_and_a_question_is_asked_beside(tmp_path: Path) -> None:
    fails = [{"text": "one "}, {"error": {"code": -32603, "message": "overloaded"}}]
    script = scripted_command(tmp_path / "acp.json", turns=[fails, [{"text": "two"}]])
    async with (
        host_process(tmp_path, "--agent", f"acp={' '.join(script)}"),
        terminal(["chat", "--agent", "acp"], tmp_path, columns=120) as person,
    ):
        await person.ready()
        person.enter("count")
        await person.see("overloaded", ":resume goes on with it")
        await person.ready()
        person.enter(":resume")
        await person.see("two")
        await person.ready()
        person.enter(":side what was that?")
        await person.see("a side chat. :chat 1 goes back", "> what was that?")
        await person.ready()
        person.enter(":chat 1")
        await person.see(":chats lists them", "> count", "two")
        await person.ready()
        assert "what was that?" not in person.screen.text.rpartition(":chat 1")[2]
        await leave(person)


async def test_the_agent_works_in_one_more_directory(host: HostProcess) -> None:
    (host.home / "library").mkdir(exist_ok=True)
    async with terminal(["chat", "--add-dir", "library"], host.home) as person:
        await person.ready()
        person.enter(":dirs")
        await person.see("  1. ~", "  2. ~/library")
        person.enter(":remove 2")
        await person.see(":remove 2", "  1. ~")
        person.enter(":add library/../library")
        await person.see(":add library/../library", "  2. ~/library")
        person.enter(":add ~nobody9/x")
        await person.see("✗ there is no directory ~nobody9/x")
        person.enter(":add nowhere")
        await person.see("✗ there is no directory nowhere")
        await leave(person)


async def test_what_was_not_sent_stands_in_the_line_the_next_time(host: HostProcess) -> None:
    async with terminal(["chat"], host.home) as person:
        await person.ready()
        person.enter("hello")
        await person.see("I am the demo agent")
        await person.ready()
        person.type("not finished")
        await person.ready("> not finished")
        name = session_of(person)
        person.process.send_signal(signal.SIGHUP)
        await person.exited()
    async with terminal(["chat", "--session", name], host.home) as person:
        await person.ready("> not finished")
        person.enter(" yet")
        await person.see("▌ not finished yet")
        await person.ready()
        await leave(person)
    async with terminal(["chat", "--session", name], host.home) as person:
        await person.see("▌ not finished yet")
        await person.ready()
        await leave(person)


async def test_a_command_nobody_knows_is_no_message(host: HostProcess) -> None:
    async with terminal(["chat"], host.home) as person:
        await person.ready()
        person.enter(":modle x")
        await person.see("✗ there is no :modle; did you mean :model?")
        person.enter(":) is a message")
        await person.see("> :) is a message", "I am the demo agent")
        await leave(person)


async def test_a_session_that_is_deleted_elsewhere_ends_the_conversation(host: HostProcess) -> None:
    async with terminal(["chat"], host.home) as person:
        await person.ready()
        await finish_cli(["sessions", "dispose", session_of(person), "--yes"], host.home)
        assert await person.exited() == 1
        assert "it was removed" in person.screen.text
        assert "Traceback" not in person.screen.text
        assert person.is_sane


async def test_control_characters_of_an_agent_do_not_reach_the_terminal(host: HostProcess) -> None:
    async with terminal(["chat"], host.home) as person:
        await person.ready()
        person.type("\x1b[200~/fail \x07\u202eevil\x1b[201~")
        person.type("\r")
        await person.see("✗ ␇\\u202eevil")
        await leave(person)


# Approvals.


async def test_an_approval_takes_one_key(host: HostProcess) -> None:
    async with terminal(["chat"], host.home) as person:
        await person.ready()
        person.enter(APPROVAL)
        await person.see("? Calculate", '    {"expression": "6*7"}', "  1. Allow once", "  2. Deny")
        await person.ready(CHOOSE)
        person.type("1")
        await person.see("… Calculate", "✓ Used Calculate", "42")
        assert f"{CHOOSE}1\n" in person.screen.text
        await leave(person)


async def test_a_denied_call_does_not_run(host: HostProcess) -> None:
    async with terminal(["chat"], host.home) as person:
        await person.ready()
        person.enter(APPROVAL)
        await person.ready(CHOOSE)
        person.type("2")
        await person.see("✗ Calculate: not run")
        await person.ready()
        assert "calculate returned" not in person.screen.text


async def test_keys_pressed_before_the_question_was_shown_begin_a_message_and_decide_nothing(host: HostProcess) -> None:
    async with terminal(["chat"], host.home) as person:
        await person.ready()
        person.type(f"{APPROVAL}\r1")
        await person.see("! the agent waits for an answer; send or clear this line first")
        await person.until(lambda screen: screen.line == "> 1")
        assert "✓" not in person.screen.text
        person.type("\x15")
        await person.ready(CHOOSE)
        person.type("2")
        await person.see("not run")


@pytest.mark.parametrize("sentence", ["1 more thing: hello", "/tool calculate {}", "later would be better", "2nd try"])
async def test_a_message_typed_at_an_approval_decides_nothing_and_is_queued(host: HostProcess, sentence: str) -> None:
    async with terminal(["chat"], host.home) as person:
        await person.ready()
        person.enter(APPROVAL)
        await person.ready(CHOOSE)
        person.enter(sentence)
        await person.see(f"> {sentence}", "queued until this turn is over")
        await person.ready(CHOOSE)
        assert not any(mark in person.screen.text for mark in ("✓", "not run", "postponed"))
        person.interrupt()
        await person.see("✗ cancelled")
        await person.until(lambda screen: screen.line == f"> {sentence}")


async def test_a_message_typed_letter_by_letter_at_an_approval_decides_nothing(host: HostProcess) -> None:
    async with terminal(["chat"], host.home) as person:
        await person.ready()
        person.enter(APPROVAL)
        await person.ready(CHOOSE)
        for typed in ("1", " ", "m"):
            person.type(typed)
            await asyncio.sleep(0.05)  # As fast as people are.
        await person.until(lambda screen: screen.line == "> 1 m")
        person.type("\x15")
        await person.ready(CHOOSE)
        assert "✓" not in person.screen.text


async def test_lines_that_come_in_one_go_are_a_paste_and_decide_nothing(host: HostProcess) -> None:
    """A terminal that does not mark pastes sends them like keys."""
    async with terminal(["chat"], host.home) as person:
        await person.ready()
        person.enter(APPROVAL)
        await person.ready(CHOOSE)
        person.type("yes\rand then\rthe rest\r")
        await person.ready("> yes⏎and then⏎the rest")
        person.type("\x15")
        await person.ready(CHOOSE)
        person.enter("no")
        await person.see("not run")
        await leave(person)


async def test_a_line_typed_before_the_question_is_a_message_in_a_terminal_without_keys_too(host: HostProcess) -> None:
    async with terminal(["chat"], host.home, TERM="dumb") as person:
        await person.ready()
        person.type(f"{APPROVAL}\r1\r")
        await person.see("1. Allow once")
        await person.ready(CHOOSE)
        person.enter("deny")
        await person.see("not run", "You said:", "> 1")
        person.type("\x04")
        assert await person.exited() == 0


async def test_a_paste_at_an_approval_decides_nothing(host: HostProcess) -> None:
    async with terminal(["chat"], host.home) as person:
        await person.ready()
        person.enter(APPROVAL)
        await person.ready(CHOOSE)
        person.type("\x1b[200~1\x1b[201~")
        await person.until(lambda screen: screen.line == "> 1")
        assert "✓" not in person.screen.text


async def test_a_key_that_is_no_choice_says_what_is_possible(host: HostProcess) -> None:
    async with terminal(["chat"], host.home) as person:
        await person.ready()
        person.enter(APPROVAL)
        await person.ready(CHOOSE)
        person.type("x")
        await person.see("'x' is not a choice; possible: 1 = Allow once, 2 = Deny, e = edit the input first, ")
        await person.ready(CHOOSE)
        person.enter("")
        await person.see("possible: 1 = Allow once")
        person.enter("yes")
        await person.see("✓ Used Calculate", "42")


async def test_with_more_options_than_keys_a_number_says_that_enter_takes_it(host: HostProcess) -> None:
    async with terminal(["chat"], host.home) as person:
        await person.ready()
        person.enter(APPROVAL)
        await person.ready(CHOOSE)
        person.type("r")
        await person.see("10. Always deny calculate everywhere", "type a number and Enter, or [e]dit [l]ater:")
        await person.ready("  type a number and Enter, or [e]dit [l]ater: ")
        person.type("1")
        await person.see("Enter takes it: Allow once")
        assert "is not a choice" not in person.screen.text
        person.type("\r")
        await person.see("✓ Used Calculate", "42")


async def test_a_long_input_is_shown_whole_on_request(host: HostProcess) -> None:
    expression = "+".join(str(number) for number in range(1000))
    async with terminal(["chat"], host.home) as person:
        await person.ready()
        person.enter(f'/tool calculate {{"expression": "{expression}"}}')
        await person.see("more characters")
        assert "+999" not in person.screen.text.partition("? Calculate")[2]
        await person.ready("  choose one, or [e]dit [r]emember [l]ater [s]how all: ")
        person.type("s")
        await person.see('+999"}')
        await person.ready(CHOOSE)
        person.type("2")
        await person.see("not run")


async def test_later_leaves_the_decision_to_another_client(host: HostProcess) -> None:
    async with terminal(["chat"], host.home) as first:
        await first.ready()
        first.enter(APPROVAL)
        await first.ready(CHOOSE)
        first.type("l")
        await first.see("postponed")
        async with terminal(["chat", "--session", session_of(first)], host.home) as second:
            await second.ready(CHOOSE)
            second.type("1")
            await first.see("✓ Used Calculate")


async def test_what_was_left_for_later_comes_back(host: HostProcess) -> None:
    async with terminal(["chat"], host.home) as person:
        await person.ready()
        person.enter(":pending")
        await person.see("Nothing waits for you here.")
        person.enter(APPROVAL)
        await person.ready(CHOOSE)
        person.type("l")
        await person.see("postponed: :pending asks again")
        person.enter(":pending")
        await person.see("? Calculate")
        await person.ready(CHOOSE)
        person.enter(":pending")  # It is a command here, too, and asks for nothing twice.
        await person.see("> :pending")
        await person.ready(CHOOSE)
        person.type("1")
        await person.see("✓ Used Calculate", "42")
        await leave(person)


# Questions.


async def test_every_kind_of_question_can_be_answered(host: HostProcess) -> None:
    async with terminal(["chat"], host.home) as person:
        await person.ready()
        person.enter("/ask")
        await person.see("? The demo agent has a few questions.", "What is your name? (required)")
        await person.ready("  text, 1 to 80 characters: ")
        person.enter("")
        await person.see("this question needs an answer")
        person.enter("Ada")
        await person.ready("  email: ")
        person.enter("nonsense")
        await person.see("must be a valid email")
        person.enter("ada@example.org")
        await person.ready("  a whole number from 0 to 150: ")
        person.enter("many")
        await person.see("please give a whole number")
        person.enter("300")
        await person.see("must be at most 150")
        person.enter("36")
        await person.ready("  a number from 0 to 1 [0.5]: ")
        person.enter("")
        await person.ready("  y or n [y]: ")
        person.enter("n")
        await person.see("1. Red", "2. Blue (recommended)")
        person.enter("mauve")
        await person.see("1. Apple", "2. Pear", "3. Plum")
        person.enter("1 2 3")
        await person.see("must be at most 2 selections")
        person.enter("1 plum")
        await person.see(" • name: Ada", " • email: ada@example.org", " • age: 36", " • ratio: 0.5")
        await person.see(" • agree: False", " • colour: mauve", " • fruit: apple, plum")
        await leave(person)


async def test_questions_can_be_skipped_or_declined(host: HostProcess) -> None:
    async with terminal(["chat"], host.home) as person:
        await person.ready()
        person.enter("/ask")
        await person.ready("  text, 1 to 80 characters: ")
        person.enter("Ada")
        await person.ready("  email: ")
        person.enter("")
        await person.ready("  a whole number from 0 to 150: ")
        person.type("\x04")
        await person.see("You chose to decline.")
        await leave(person)


async def test_a_question_answered_elsewhere_is_withdrawn(host: HostProcess) -> None:
    async with terminal(["chat"], host.home) as first:
        await first.ready()
        first.enter("/ask")
        await first.ready("  text, 1 to 80 characters: ")
        first.type("Half a na")
        async with terminal(["chat", "--session", session_of(first)], host.home) as second:
            await second.ready("  text, 1 to 80 characters: ")
            second.type("\x04")
            await second.see("You chose to decline.")
        await first.see("settled by another client", "You chose to decline.")
        await leave(first)


# Leaving.


async def test_ctrl_c_cancels_the_turn_and_the_conversation_goes_on(host: HostProcess) -> None:
    async with terminal(["chat"], host.home) as person:
        await person.ready()
        person.enter("/sleep 60")
        await person.see("Sleeping")
        person.interrupt()
        await person.see("✗ cancelled")
        await person.ready()
        person.enter("/usage")
        await person.see("tokens")
        await leave(person)
        assert person.is_sane


async def test_ctrl_c_ends_the_text_of_an_answer_that_came_long_ago(host: HostProcess) -> None:
    """The host says all of it at once; a terminal takes much longer to show it."""
    async with terminal(["chat"], host.home) as person:
        await person.ready()
        person.enter("/stream 100000")
        await person.see("delta 20 ")
        person.interrupt()
        await person.until(lambda screen: "✗ cancelled" in screen.text or "✗ stopped here" in screen.text)
        await person.ready()
        assert "99999" not in person.screen.text
        await leave(person)
        assert person.is_sane


async def test_a_second_ctrl_c_leaves_a_turn_that_does_not_end(tmp_path: Path) -> None:
    async with host_process(tmp_path) as host, terminal(["chat"], tmp_path) as person:
        await person.ready()
        person.enter("/sleep 60")
        await person.see("Sleeping")
        host.process.send_signal(signal.SIGSTOP)
        person.interrupt()
        await person.see("… cancelling; Ctrl-C again leaves")
        person.interrupt()
        assert await person.exited() == 130
        assert person.is_sane


async def test_ctrl_c_during_an_approval_cancels_the_turn(host: HostProcess) -> None:
    async with terminal(["chat"], host.home) as person:
        sane = person.mode
        await person.ready()
        person.enter(APPROVAL)
        await person.ready(CHOOSE)
        person.interrupt()
        await person.see("Calculate: not run", "✗ cancelled")
        assert "settled by another client" not in person.screen.text
        await person.ready()
        person.interrupt()
        assert await person.exited() == 0
        assert person.mode == sane
        assert person.is_sane


async def test_ctrl_c_clears_what_was_typed_and_leaves_an_empty_line(host: HostProcess) -> None:
    async with terminal(["chat"], host.home) as person:
        await person.ready()
        person.type("never mind")
        await person.until(lambda screen: screen.line == "> never mind")
        person.interrupt()
        await person.ready()
        person.interrupt()
        assert await person.exited() == 0
        assert person.is_sane


@pytest.mark.parametrize("word", [":quit", ":q", ":exit", "/quit", "/exit", "exit", "quit"])
async def test_a_word_leaves_too(host: HostProcess, word: str) -> None:
    async with terminal(["chat"], host.home) as person:
        await person.ready()
        person.enter(word)
        assert await person.exited() == 0


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGHUP])
async def test_the_terminal_is_put_back_when_the_command_is_told_to_end(host: HostProcess, signum: int) -> None:
    async with terminal(["chat"], host.home) as person:
        await person.ready()
        person.process.send_signal(signum)
        assert await person.exited() == 130
        assert person.is_sane


async def test_a_session_nobody_spoke_in_is_not_kept(host: HostProcess) -> None:
    async with terminal(["chat"], host.home) as person:
        await person.ready()
        name = session_of(person)
        await leave(person)
        code, _, errors = await finish_cli(["sessions", "show", name], host.home)
        assert (code, errors) == (1, f"Error: there is no session '{name}'; see: ahpkit sessions list --all\n")


async def test_leaving_says_how_to_come_back(host: HostProcess) -> None:
    async with terminal(["chat"], host.home) as person:
        await person.ready()
        person.enter("remember me")
        await person.see("I am the demo agent")
        name = session_of(person)
        await leave(person)
        assert person.screen.text.rstrip().endswith(f"Go on with:  ahpkit chat --session {name}")
    async with terminal(["chat", "--session", name], host.home) as person:
        await person.see("> remember me", "Hello! You said:", "I am the demo agent")
        await leave(person)


async def test_the_last_session_of_the_directory_is_gone_on_with_and_one_of_several_is_picked(
    host: HostProcess,
) -> None:
    place = host.home / "several"
    place.mkdir()
    for text in ("first of two", "second of two"):
        await finish_cli(["prompt", text, "--keep", "--dir", "several"], host.home)
    async with terminal(["chat", "--continue", "--dir", "several"], host.home) as person:
        await person.see("  1. ", "second of two", "  2. ", "first of two", "Which one [1]:")
        person.type("2\n")
        await person.see("> first of two")
        await leave(person)
    async with terminal(["chat", "--session", "of two"], host.home) as person:
        await person.see("Which one [1]:")
        person.type("\n")
        await person.see("> second of two")
        await leave(person)
    async with terminal(["tail", "of two"], host.home) as person:
        await person.see("Which one [1]:")
        person.type("2\n")
        await person.see("following ahp-session:/")


async def test_ctrl_c_while_an_agent_starts_leaves_nothing_behind_and_keys_are_kept(tmp_path: Path) -> None:
    agent = " ".join(
        scripted_command(
            tmp_path / "slow.json", methods={"session/new": [{"sleep": 2}, {"result": {"sessionId": "s"}}]}
        )
    )
    async with host_process(tmp_path, "--agent", f"slow={agent}") as host:
        async with terminal(["chat", "--agent", "slow"], tmp_path) as person:
            await person.see("Starting the agent")
            person.type("kept")
            await person.until(lambda screen: screen.line == "> kept")
            assert "kept" not in person.raw.partition("> ")[0], "it stood in the line that says what is done"
        async with terminal(["chat", "--agent", "slow"], tmp_path) as person:
            await person.see("Starting the agent")
            person.interrupt()
            assert await person.exited() == 130
            assert person.is_sane
        client = await host.client()
        listed = (await client.ask("listSessions"))["items"]
        assert len(listed) <= 1  # Only the first, which was not left but cut off.


async def test_ctrl_c_while_an_agent_hangs_at_its_start_ends_the_agents_process(tmp_path: Path) -> None:
    script = tmp_path / "hangs.json"
    agent = " ".join(scripted_command(script, methods={"session/new": [{"sleep": 600}]}))
    async with host_process(tmp_path, "--agent", f"hangs={agent}"):
        async with terminal(["chat", "--agent", "hangs"], tmp_path) as person:
            await person.see("Starting the agent")
            await until(lambda: bool(running_with(script)))
            person.interrupt()
            assert await person.exited() == 130
        await until(lambda: not running_with(script))


def running_with(script: Path) -> list[str]:
    """The processes that were started with this file on their command line."""
    found: list[str] = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = entry.read_bytes().split(b"\0")
            found += [entry.parent.name] * (str(script).encode() in words)
    return found


# Together, and through restarts.


async def test_what_another_client_does_is_shown_above_what_is_being_typed(host: HostProcess) -> None:
    async with terminal(["chat"], host.home) as first:
        await first.ready()
        first.type("half a thou")
        await first.until(lambda screen: screen.line == "> half a thou")
        async with terminal(["chat", "--session", session_of(first)], host.home) as second:
            await second.ready()
            second.enter(APPROVAL)
            await first.see(f"» {APPROVAL}", "! the agent waits for an answer")
            await first.until(lambda screen: screen.line == "> half a thou")
            first.type("\x15")
            await first.see("? Calculate")
            await first.ready(CHOOSE)
            await second.ready(CHOOSE)  # Only who was asked is told that somebody else was faster.
            first.type("1")
            await second.see("settled by another client", "✓ Used Calculate")
            await first.see("✓ Used Calculate", "42")


async def test_a_running_turn_is_joined_from_its_beginning_and_can_be_cancelled(host: HostProcess) -> None:
    async with terminal(["chat"], host.home) as first:
        await first.ready()
        first.enter("/sleep 60")
        await first.see("Sleeping")
        async with terminal(["chat", "--session", session_of(first)], host.home) as second:
            await second.see("» /sleep 60", "Sleeping for 60 seconds.")
            second.interrupt()
            await second.see("✗ cancelled")
            await first.see("✗ cancelled")


async def test_ctrl_c_throws_away_neither_what_was_written_nor_what_was_typed(host: HostProcess) -> None:
    async with terminal(["chat"], host.home) as person:
        before = person.mode[3]
        await person.ready()
        assert person.mode[3] & termios.NOFLSH
        person.enter("/sleep 60")
        await person.see("Sleeping")
        person.type("typed before")
        person.interrupt()
        await person.see("✗ cancelled")
        await person.until(lambda screen: screen.line == "> typed before")
        person.type("\x15\x04")
        assert await person.exited() == 0
        assert person.mode[3] == before


async def test_the_conversation_goes_on_when_the_host_was_restarted(tmp_path: Path) -> None:
    host = await start_host(tmp_path)
    try:
        async with terminal(["chat"], tmp_path) as person:
            await person.ready()
            person.enter("/sleep 60")
            await person.see("Sleeping")
            host.kill()
            await host.process.wait()
            await person.see("! connection lost; trying to get it back")
            host = await start_host(tmp_path)
            await person.see("! connected again", "✗ The host stopped while this turn was running.")
            assert person.screen.text.count("connection lost") == 1
            await person.ready()
            person.enter("/usage")
            await person.see("tokens")
            await leave(person)
    finally:
        await host.stop()


async def test_the_connection_comes_back_while_a_line_is_typed(tmp_path: Path) -> None:
    host = await start_host(tmp_path)
    try:
        async with terminal(["chat"], tmp_path) as person:
            await person.ready()
            person.type("still here")
            await person.until(lambda screen: screen.line == "> still here")
            await host.stop()
            await person.see("! connection lost")
            await person.until(lambda screen: screen.line == "> still here")
            host = await start_host(tmp_path)
            await person.see("! connected again")
            person.type("\r")
            await person.see("I am the demo agent")
    finally:
        await host.stop()


async def test_an_agent_that_ignores_being_cancelled_is_left_behind(tmp_path: Path) -> None:
    (tmp_path / "stubborn.py").write_text(STUBBORN)
    (tmp_path / "host.toml").write_text('[agents.stubborn]\npython = "stubborn.py:stubborn"')
    async with host_process(tmp_path, "--config", "host.toml"), terminal(["chat"], tmp_path) as person:
        await person.see("with stubborn")
        await person.ready()
        person.enter("go")
        await person.see("Nothing stops me.")
        person.interrupt()
        await person.see("✗ cancelled")
        await leave(person)


# Without a terminal.


async def test_lines_of_a_pipe_are_sent_one_after_the_other(host: HostProcess) -> None:
    code, output, errors = await finish_cli(["chat"], host.home, input="/think\n\n/usage\n")
    assert (code, errors) == (0, "")
    assert output == (
        "The user wants to see me think. First I think. Then I answer.\n"
        "I thought about it, and this is my answer.\n"
        "· tokens: 1 in, 12 out, 1 from the cache\n"
        "This turn used a few tokens that nobody has to pay for.\n"
    )


async def test_a_pipe_answers_questions_and_approves(host: HostProcess) -> None:
    lines = [APPROVAL, "1", "/ask", "Ada", "", "36", "0.25", "y", "blue", "pear"]
    code, output, errors = await finish_cli(["chat"], host.home, input="\n".join(lines))
    assert (code, errors) == (0, "")
    assert "✓ Used Calculate\n" in output
    assert "- **name**: Ada\n- **email**: no answer\n- **age**: 36\n- **ratio**: 0.25\n" in output
    assert output.endswith("- **agree**: True\n- **colour**: blue\n- **fruit**: pear\n")


async def test_a_line_of_a_pipe_that_only_begins_like_a_choice_decides_nothing(host: HostProcess) -> None:
    code, output, errors = await finish_cli(["chat"], host.home, input=f"{APPROVAL}\n1 more thing\nlater on\n")
    assert code == 0
    assert "✗ Calculate: not run (nobody is there to approve it)" in output
    assert [line.partition(";")[0] for line in errors.splitlines()] == [
        "  '1 more thing' is not a choice",
        "  'later on' is not a choice",
    ]


async def test_what_a_pipe_does_not_answer_is_denied_and_declined(host: HostProcess) -> None:
    code, output, _ = await finish_cli(["chat"], host.home, input=APPROVAL)
    assert code == 0
    assert "✗ Calculate: not run (nobody is there to approve it)" in output
    code, output, _ = await finish_cli(["chat"], host.home, input="/ask\n")
    assert (code, output.splitlines()[-1]) == (0, "You chose to decline.")


async def test_a_file_is_read_like_a_pipe(host: HostProcess) -> None:
    code, output, errors = await shell("echo /usage > in.txt; ahpkit chat < in.txt", host.home)
    assert (code, errors) == (0, "")
    assert output.endswith("nobody has to pay for.\n")


async def test_there_are_no_colours_without_a_terminal(host: HostProcess) -> None:
    _, output, errors = await finish_cli(["chat"], host.home, input="/think\n/fail\n", TERM="xterm-256color")
    assert "\x1b" not in output + errors


async def test_colours_are_off_when_the_user_says_so(host: HostProcess) -> None:
    async with terminal(["chat"], host.home, NO_COLOR="1") as person:
        await person.ready()
        person.enter("/fail")
        await person.see("✗ This is the failure you asked for.")
        assert "\x1b[31m" not in person.raw
    async with terminal(["chat"], host.home) as person:
        await person.ready()
        person.enter("/fail")
        await person.see("✗ This is the failure you asked for.")
        assert "\x1b[31m" in person.raw


async def test_a_terminal_that_can_do_nothing_is_used_line_by_line(host: HostProcess) -> None:
    async with terminal(["chat"], host.home, TERM="dumb") as person:
        await person.see("Ctrl-D leaves.")
        person.type("/usage\n")
        await person.see("tokens")
        person.type("\x04")
        assert await person.exited() == 0
        assert person.raw.rstrip().rpartition("\n")[2].startswith("Go on with:  ahpkit chat --session ")
        assert "\x1b" not in person.raw


# Before anything is said.


async def test_choosing_a_session_and_saying_what_a_new_one_is_like_does_not_go_together(host: HostProcess) -> None:
    code, _, errors = await finish_cli(["chat", "--session", "x", "--model", "demo-large"], host.home)
    assert code == 2
    assert "--agent, --model and --dir are for new sessions" in errors


# Two at once, and a window that changes its size.


async def test_two_approvals_at_once_are_asked_one_after_the_other(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(PARALLEL)
    (tmp_path / "settings.toml").write_text(f'[agents.parallel]\npython = "{tmp_path}/agent.py:parallel"\n')
    options = ("--config", str(tmp_path / "settings.toml"), "--durability", "memory", "--root", str(tmp_path))
    async with (
        host_process(tmp_path, *options),
        terminal(["chat", "--agent", "parallel"], tmp_path) as person,
    ):
        await person.ready()
        person.enter("look both ways")
        for place, key in (("left", "y"), ("right", "n")):
            await person.see(f'{{"place": "{place}"}}')
            await person.until(lambda screen: screen.line.lstrip().startswith("approve?"))
            person.type(key)
        await person.see("seen left")
        assert "seen right" not in person.screen.text
        await leave(person)


async def test_a_window_that_changes_its_size_loses_nothing_of_what_is_typed(host: HostProcess) -> None:
    words = "one two three four five six seven eight nine ten eleven twelve"
    async with terminal(["chat"], host.home, columns=100) as person:
        await person.ready()
        person.type(words)
        await person.until(lambda screen: screen.line.endswith("twelve"))
        person.resize(50)
        person.type(" thirteen")
        await person.until(lambda screen: screen.line.endswith("thirteen"))
        person.resize(120)
        person.enter(" fourteen")
        await person.until(lambda screen: "I am the demo agent" in screen.text.replace("\n", " "))
        answer = " ".join(person.screen.text.partition("You said:")[2].replace("▌", " ").split())
        assert answer.startswith(f"{words} thirteen fourteen I am the demo agent")
        await leave(person)
