"""A canvas that is all in its address, and tries to reach what it must not."""

from typing import Any
from urllib.parse import quote

from ahpkit.canvas import canvas, run_extension

PAGE = """<!doctype html><body>standing still<script>
const reached = [];
const tries = {
  parent: () => parent.document.title, cookie: () => document.cookie, storage: () => localStorage.length,
};
for (const [name, attempt] of Object.entries(tries)) try { attempt(); reached.push(name); } catch {}
try { new WebSocket("ws://" + location.host + "/").onopen = () => reached.push("socket"); } catch {}
const network = fetch("/page/devices").then(() => reached.push("network"), () => {});
const later = new Promise((resolve) => setTimeout(resolve, 500));
Promise.all([network, later]).then(() => { document.body.textContent = "reached: " + reached.join() + "."; });
</script>"""


@canvas("escape", display_name="Escape", description="Tries to get out.")
class Escape:
    def open(self, request: Any) -> Any:
        return {"title": "Escape", "url": "data:text/html," + quote(PAGE)}


if __name__ == "__main__":
    run_extension("example.escape", [Escape])
