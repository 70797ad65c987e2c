"""A tiny renderer: shows the open canvases of a session in a browser, each in a frame that is kept apart.

Run: ahpkit serve, and in another terminal: python examples/canvas_renderer.py [SESSION_URI]
Then open the address it prints. What the URL policy refuses is named, never loaded.
"""

import asyncio
import html
import secrets
import sys
from collections.abc import Sequence
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from ahpkit.canvas.url_policy import FRAME_ATTRIBUTES, UrlPolicy, check_url, csp_for
from ahpkit.client import Client, Session, connect
from ahpkit.http.router import Access, Router
from ahpkit.http.server import serve_http
from ahpkit.transports.auth import Authenticator

POLICY = UrlPolicy()

SCRIPT = """
setInterval(async () => {
  if (await (await fetch("version")).text() !== document.body.dataset.version) location.reload();
}, 500);
"""


def version(instances: Sequence[Any]) -> str:
    """What the page shows: it is made anew when this changes, and frames stay as they are when it does not."""
    return str(hash(tuple((one["instanceId"], one.get("url"), one["availability"]) for one in instances)))


def frame(instance: Any) -> str:
    """An instance as HTML: a frame for a URL that the policy allows, or the reason why there is none."""
    title = html.escape(instance.get("title", instance["instanceId"]))
    verdict = check_url(instance.get("url"), POLICY)
    if not verdict.allowed:
        return f"<h2>{title}</h2><p class='refused'>Not shown: {html.escape(verdict.reason)}</p>"
    attributes = " ".join(f'{name}="{value}"' for name, value in FRAME_ATTRIBUTES.items())
    return f'<h2>{title}</h2><iframe {attributes} src="{html.escape(verdict.url)}"></iframe>'


def render(instances: Sequence[Any]) -> HTMLResponse:
    """The whole page. Its own policy admits the frames it shows and nothing else."""
    nonce = secrets.token_urlsafe(16)
    verdicts = [check_url(one.get("url"), POLICY) for one in instances]
    allowed = [verdict.url for verdict in verdicts if verdict.allowed]
    body = (
        f"<!doctype html><title>Canvases</title><style nonce='{nonce}'>iframe {{ width: 100%; height: 24rem }}</style>"
        f"<body data-version='{version(instances)}'>{''.join(map(frame, instances)) or 'No canvas is open.'}"
        f"<script nonce='{nonce}'>{SCRIPT}</script>"
    )
    policy = csp_for(*allowed, script_src=f"'nonce-{nonce}'", style_src=f"'nonce-{nonce}'", connect_src="'self'")
    return HTMLResponse(body, headers={"Content-Security-Policy": policy})


async def main(client: Client, uri: str | None = None) -> None:
    sessions = await client.sessions()
    session: Session = await client.session(uri or sessions[0]["resource"])
    await session.claim(can_render=True).accepted()

    def instances() -> Sequence[Any]:
        return session.state.get("openCanvases", [])

    async def page(request: Request) -> Response:
        return render(instances())

    async def shown(request: Request) -> Response:
        return PlainTextResponse(version(instances()))

    async def no_websocket(transport: Any) -> None: ...

    router = Router()
    router.mount("/", Starlette(routes=[Route("/", page), Route("/version", shown)]), access=Access.PUBLIC)
    async with serve_http(no_websocket, auth=Authenticator(None), routes=router) as server:
        print(f"http://127.0.0.1:{server.port}/", flush=True)
        await asyncio.Event().wait()


async def run() -> None:
    async with connect() as client:
        await main(client, *sys.argv[1:2])


if __name__ == "__main__":
    asyncio.run(run())
