"""The reference page names every place, every header key and every diagnostic there is."""

import re
from pathlib import Path

from ahpkit.customizations.components import FIELD_KEYS, PRIVILEGED_KEYS, SHOWN_KEYS
from ahpkit.customizations.formats import MANIFESTS
from ahpkit.customizations.standard_places import USER, WORKSPACE

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/reference/customization-formats.md").read_text(encoding="utf-8")
SOURCES = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "src/ahpkit/customizations").glob("*.py"))]

_REPORTED = re.compile(r'(?:report\.(?:note|warn|error)|level|_cut)\(\s*"([a-z-]+)"')
_MADE = re.compile(r'(?:Diagnostic|Problem|_find|reader\.add)\([^")]*(?:"(?:note|warning|error)"[^"]*)+, "([a-z-]+)"')


def codes() -> set[str]:
    return {match[1] for source in SOURCES for pattern in (_REPORTED, _MADE) for match in pattern.finditer(source)}


def test_every_diagnostic_is_described_and_every_description_is_one() -> None:
    described = set(re.findall(r"^\| `([a-z-]+)` \| (?:note|warning|error)", PAGE, re.MULTILINE))
    assert codes() - described == set()
    assert {code for code in described if not any(f'"{code}"' in source for source in SOURCES)} == set()
    assert len(described) > 50


def test_every_place_is_listed() -> None:
    for place in (*WORKSPACE, *USER):
        for name in place.files or ("",):
            path = "/".join(part for part in (place.folder, name) if part)
            assert f"`{path}`" in PAGE or (f"`{place.folder}`" in PAGE and f"`{name}`" in PAGE), path


def test_every_manifest_is_listed() -> None:
    assert [path for path, _ in MANIFESTS if f"`{path}`" not in PAGE] == []


def test_every_header_key_that_does_something_is_listed() -> None:
    kept = {
        "metadata",
        "shell",
        "background",
        "handoffs",
        "agents",
        "skills",
        "maxTurns",
        "memory",
        "isolation",
        "initialPrompt",
        "keywords",
    }
    keys = (FIELD_KEYS | PRIVILEGED_KEYS | SHOWN_KEYS) - kept
    assert sorted(key for key in keys if f"`{key}`" not in PAGE) == []
