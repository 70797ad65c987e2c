"""An MCP server of the official SDK, as a program over stdio: tools that work, fail, hang and ask.

`TEST_MODES=legacy` in the environment: it speaks only the older era. What is odd about servers is in `plain_server.py`.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.runner import serve_loop
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged

LEGACY = os.environ.get("TEST_MODES") == "legacy"
NAMES = [
    *("add", "fail", "hang", "big", "roots", "ask", "sample", "sample_often", "slow", "grow", "structured"),
    *("list", "fail_in_full"),
]
EMPTY: dict[str, Any] = {"type": "object", "properties": {}}
extra: list[str] = []
bus = InMemorySubscriptionBus()


def tool(name: str, description: str) -> types.Tool:
    return types.Tool(name=name, description=description, input_schema=EMPTY)


async def list_tools(ctx: Any, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[tool(name, f"The {name} tool") for name in (*NAMES, *extra)])


async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult | types.InputRequiredResult:
    given = params.arguments or {}
    match params.name:
        case "add":
            return said(str(given["a"] + given["b"]))
        case "fail":
            return types.CallToolResult(content=[types.TextContent(type="text", text="no luck")], is_error=True)
        case "hang":
            note(given["file"], "started")
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                note(given["file"], "cancelled")
                raise
        case "big":
            return said("x" * given["size"])
        case "roots":
            answer = await ask(ctx, params, types.ListRootsRequest())
            return answer if needs_input(answer) else said(" ".join(str(root.uri) for root in answer.roots))
        case "ask":
            return await ask_often(ctx, params)
        case "sample":
            message = types.SamplingMessage(role="user", content=types.TextContent(type="text", text="Hello?"))
            request = types.CreateMessageRequest(
                params=types.CreateMessageRequestParams(messages=[message], max_tokens=10)
            )
            answer = await ask(ctx, params, request)
            return answer if needs_input(answer) else said(answer.content.text)
        case "sample_often":
            return await sample_often(ctx, params)
        case "slow":
            for step in range(3):
                await ctx.session.report_progress(step + 1, 3, f"step {step + 1}")
            return said("done")
        case "grow":
            extra.append(given.get("name", f"grown_{len(extra)}"))
            await bus.publish(ToolsListChanged())
            if ctx.session.can_send_request:
                await ctx.session.send_tool_list_changed()
                await ctx.session.send_resource_list_changed()
            return said("grown")
        case "structured":
            return types.CallToolResult(
                content=[types.TextContent(type="text", text='{"n": 1}')], structured_content={"n": 1}
            )
        case "list":
            return types.CallToolResult(content=[], structured_content=[1, "ü"])
        case "fail_in_full":
            picture = types.ImageContent(type="image", data="AAAA", mime_type="image/png")
            return types.CallToolResult(content=[picture], structured_content={"code": 7}, is_error=True)
        case _:
            return said(f"called {params.name}")
    raise AssertionError


RESULTS = {
    "roots/list": types.ListRootsResult,
    "elicitation/create": types.ElicitResult,
    "sampling/createMessage": types.CreateMessageResult,
}


def needs_input(answer: Any) -> bool:
    return isinstance(answer, types.InputRequiredResult)


async def ask(ctx: Any, params: types.CallToolRequestParams, request: Any) -> Any:
    """Put a question in the way of the era: a request of its own, or a result that wants the call again."""
    if ctx.session.can_send_request:
        return await ctx.session.send_request(request, RESULTS[request.method])
    if params.input_responses is None:
        return types.InputRequiredResult(input_requests={"q": request}, request_state="1")
    return params.input_responses["q"]


async def ask_often(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult | types.InputRequiredResult:
    given = params.arguments or {}
    times = given.get("times", 1)
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    form = types.ElicitRequestFormParams(message=given.get("question", "Name?"), requested_schema=schema)
    request = types.ElicitRequest(params=form)
    if not ctx.session.can_send_request:
        done = int(params.request_state or 0)
        if done < times:
            return types.InputRequiredResult(input_requests={"q": request}, request_state=str(done + 1))
        return said(shown((params.input_responses or {})["q"]))
    answers: list[str] = []
    for _ in range(times):
        try:
            answers.append(shown(await ctx.session.send_request(request, types.ElicitResult)))
        except Exception as error:
            answers.append(f"refused: {error}")
    return said("; ".join(answers))


async def sample_often(
    ctx: Any, params: types.CallToolRequestParams
) -> types.CallToolResult | types.InputRequiredResult:
    message = types.SamplingMessage(role="user", content=types.TextContent(type="text", text="Hello?"))
    request = types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=[message], max_tokens=10))
    times, done = (params.arguments or {}).get("times", 1), int(params.request_state or 0)
    if not ctx.session.can_send_request:
        if done < times:
            return types.InputRequiredResult(input_requests={"q": request}, request_state=str(done + 1))
        return said("done")
    refused = 0
    for _ in range(times):
        try:
            await ctx.session.send_request(request, types.CreateMessageResult)
        except Exception:
            refused += 1
    return said(f"{refused} refused")


def shown(answer: Any) -> str:
    return f"{answer.action}: {answer.content}"


def note(file: str, text: str) -> None:
    Path(file).write_text(text)


def said(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


async def list_resources(ctx: Any, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
    return types.ListResourcesResult(resources=[types.Resource(name="notes", uri="test://notes")])


async def list_templates(ctx: Any, params: types.PaginatedRequestParams | None) -> types.ListResourceTemplatesResult:
    template = types.ResourceTemplate(name="page", uri_template="test://page/{number}")
    return types.ListResourceTemplatesResult(resource_templates=[template])


async def read_resource(ctx: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    return types.ReadResourceResult(contents=[types.TextResourceContents(uri=params.uri, text="remember the milk")])


async def list_prompts(ctx: Any, params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
    argument = types.PromptArgument(name="topic", required=True)
    return types.ListPromptsResult(prompts=[types.Prompt(name="poem", description="A poem", arguments=[argument])])


async def get_prompt(ctx: Any, params: types.GetPromptRequestParams) -> types.GetPromptResult:
    text = f"Write a poem about {(params.arguments or {}).get('topic')}"
    message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=text))
    return types.GetPromptResult(messages=[message])


def make() -> Server[Any]:
    return Server(
        "test-server",
        version="1",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_subscriptions_listen=ListenHandler(bus),
    )


async def main() -> None:
    server = make()
    async with stdio_server() as (read, write):
        if LEGACY:
            await serve_loop(server, read, write, lifespan_state={})
        else:
            await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
