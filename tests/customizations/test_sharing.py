"""Sessions that share a folder: one more costs no more than the first, and tells the others nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ahpkit.customizations.feature import Customizations, CustomizationSettings
from support.bench import Bench
from support.raw_client import Json


def _tells_two(uri: str) -> Callable[[Json], bool]:
    return lambda said: said["channel"] == uri and "two" in str(said["action"])


async def test_a_session_in_a_shared_folder_is_no_news_to_the_others(tmp_path: Path) -> None:
    folder = tmp_path / ".github" / "instructions"
    folder.mkdir(parents=True)
    (folder / "one.instructions.md").write_text('---\napplyTo: "**/*.py"\n---\nUse types\n')
    bench = Bench(tmp_path)
    bench.features = [Customizations(CustomizationSettings(default_directory=tmp_path, home=None))]
    await bench.start()
    client = await bench.client()
    first, _ = await bench.session(client, workingDirectory=tmp_path.as_uri())
    shown = (await bench.state(client, first))["customizations"]
    assert shown
    client.received.clear()
    others = [(await bench.session(client, workingDirectory=tmp_path.as_uri()))[0] for _ in range(3)]
    for other in others:
        assert (await bench.state(client, other))["customizations"] == shown
    assert client.actions(first) == []
    (folder / "two.instructions.md").write_text('---\napplyTo: "**/*.md"\n---\nUse words\n')
    for uri in (first, *others):
        await client.action(_tells_two(uri))
    await bench.stop()
