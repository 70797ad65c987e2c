"""`ahpkit open`, `pair` and `devices`: opens the host's page and manages the devices that may use it, over HTTP."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
import webbrowser
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from ahpkit.cli.config import trusted_settings
from ahpkit.cli.connection import chosen_name, host_name_option
from ahpkit.cli.daemon import ensure_host
from ahpkit.cli.settings import Settings
from ahpkit.cli.text import printable
from ahpkit.cli.watching import repeat, watch_option
from ahpkit.client.endpoints import Endpoint, find_endpoint, trusted_certificate
from ahpkit.client.errors import HostNotFound
from ahpkit.web.devices import RIGHTS

_SECONDS = 10.0


def _host_options(command: Any) -> Any:
    command = host_name_option(command)
    command = click.option("--token", envvar="AHPKIT_TOKEN", help="The host's token.")(command)
    return click.option("--url", envvar="AHPKIT_URL", help="The host's URL; without it, the one that runs here.")(
        command
    )


def _tell_which(url: str | None, settings: Settings | None = None) -> None:
    """Say which host is used, if none was named by its address. With `settings`, start one when none runs."""
    if url is None:
        asyncio.run(ensure_host(chosen_name(), settings))


def _endpoint(url: str | None, token: str | None) -> Endpoint:
    found = Endpoint(url, token) if url else find_endpoint(name=chosen_name())
    if found is None:
        raise HostNotFound(chosen_name())
    if not found.url.startswith(("ws://", "wss://")):
        raise click.ClickException(f"{found.url.partition('?')[0]} has no page: it is not a WebSocket address")
    return found


def _ask(url: str | None, token: str | None, path: str, body: dict[str, Any] | None = None) -> Any:
    """Send the host a GET request, or a POST request if there is a body. Returns the JSON of the answer."""
    endpoint = _endpoint(url, token)
    base = "http" + endpoint.url.removeprefix("ws").rstrip("/")
    headers = {"Content-Type": "application/json"}
    if endpoint.token:
        headers["Authorization"] = f"Bearer {endpoint.token}"
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(base + path, data, headers)
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS, context=trusted_certificate(endpoint.url)) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            words = error.read().decode(errors="replace").strip()
        raise click.ClickException(words or f"HTTP {error.code}") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        words = "nobody listens there" if isinstance(reason, ConnectionRefusedError) else reason
        raise click.ClickException(f"the host at {base} does not answer: {words}") from error


@click.command("open")
@click.option("--print", "only_print", is_flag=True, help="Print the link; open nothing.")
@_host_options
def open_page(url: str | None, token: str | None, only_print: bool) -> None:
    """Open the page of the running host in a browser.

    The link carries a code that works once. The browser then has a cookie and needs no further link.

    \b
    Example:
      ahpkit open
      ahpkit open --print
    """
    _tell_which(url, trusted_settings(None, Path.cwd()))
    link: str = _ask(url, token, "/page/link", {})["url"]
    if only_print or not webbrowser.open(link):
        click.echo(link)
    else:
        click.echo(f"Opened in your browser: {link.partition('/in?')[0]}/", err=True)


@click.command()
@click.option("--right", type=click.Choice(RIGHTS), default="answer", show_default=True, help="What the device may do.")
@click.option("--name", default="Phone", show_default=True, help="What to call the device.")
@click.option("--json", "json_output", is_flag=True, help="The link, the code and until when they work, as JSON.")
@_host_options
def pair(url: str | None, token: str | None, right: str, name: str, json_output: bool) -> None:
    """Show a QR code that lets another device in, once.

    The host must be reachable by that device: it listens beyond loopback with TLS, or `canvas.page_url` says under
    which address a proxy or a tunnel leads to it.

    \b
    Example:
      ahpkit pair
      ahpkit pair --right watch --name Tablet
    """
    _tell_which(url)
    made = _ask(url, token, "/page/pair", {"right": right, "name": name})
    if json_output:
        return click.echo(json.dumps(made))
    click.echo(qr_code(made["url"]))
    click.echo(f"Scan it, or open {made['url'].partition('/in?')[0]} there and type {made['code']}")
    until = datetime.fromisoformat(made["expiresAt"]).astimezone()
    return click.echo(f"It works once, until {until:%H:%M}.")


def qr_code(text: str) -> str:
    """A QR code in characters. Each line shows two rows of the code, dark on light whatever the terminal's colours
    are."""
    import segno  # Imported here: nothing else needs it.

    rows = [list(row) for row in segno.make(text, error="m").matrix_iter(border=2)]
    if len(rows) % 2:
        rows.append([0] * len(rows[0]))
    blocks = {(0, 0): "█", (0, 1): "▀", (1, 0): "▄", (1, 1): " "}
    pairs = zip(rows[::2], rows[1::2], strict=True)
    return "\n".join("".join(blocks[top, low] for top, low in zip(*pair, strict=True)) for pair in pairs)


@click.group()
def devices() -> None:
    """List or revoke the browsers that may come in.

    \b
    Example:
      ahpkit devices list
      ahpkit devices revoke 3fa2c1
    """


@devices.command("list")
@watch_option
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@_host_options
def list_devices(url: str | None, token: str | None, watching: bool, as_json: bool) -> None:
    """List the browsers that were let in, the one seen last first.

    \b
    Example:
      ahpkit devices list
    """
    _tell_which(url)
    repeat(
        lambda: _ask(url, token, "/page/devices")["devices"],
        lambda found: click.echo(json.dumps(found) if as_json else _list(found)),
        watching=watching,
        clear=not as_json,
    )


def _list(found: list[dict[str, Any]]) -> str:
    lines = [
        f"{one['id']}  {one['right']:<10}  {printable(one['name'])}  last seen {one['lastSeenAt']}" for one in found
    ]
    return "\n".join(lines) or "No browser has been let in yet."


@devices.command("revoke")
@click.argument("device")
@_host_options
def revoke(url: str | None, token: str | None, device: str) -> None:
    """Never let a device in again, and disconnect it now. DEVICE is its id, or the beginning of it.

    \b
    Example:
      ahpkit devices revoke 3fa2c1
    """
    _tell_which(url)
    found = [one for one in _ask(url, token, "/page/devices")["devices"] if one["id"].startswith(device)]
    if len(found) != 1:
        raise click.ClickException(
            f"{len(found) or 'no'} devices have an id that begins with {device!r}; see: ahpkit devices list"
        )
    _ask(url, token, "/page/devices/revoke", {"id": found[0]["id"]})
    click.echo(f"Revoked: {printable(found[0]['name'])}")


__all__ = ["devices", "open_page", "pair"]
