"""Finds hooks and servers together with the files that they name, for trust.

It reads files, but starts nothing.

Trust is bound to this content (`ahpkit.host.trust`). The words of a command may name files: those in the workspace, in
the plugin or in the user's home are part of the content, and so are the files that `make`, `npm` and the like read
there. Folders, wildcards, variables and modules in the command line are resolved. Files that those files load are not.
This module is long because each launcher (`make`, `npm`, `python -m` …) names its files in its own way.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import stat
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from glob import escape, iglob
from itertools import islice
from pathlib import Path
from typing import Any, cast

from ahpkit.customizations.details import Container, HookDetail, Parsed, ServerDetail
from ahpkit.customizations.diagnostics import Diagnostic, load_state
from ahpkit.customizations.discovery import Library, Location, locate, located
from ahpkit.customizations.hooks import command_of
from ahpkit.customizations.in_force import InForce
from ahpkit.customizations.mcp_files import Surroundings, launch_config
from ahpkit.customizations.server_data import BETWEEN_WORDS, ServerData, may_become_setting
from ahpkit.customizations.source import IGNORED_FOLDERS
from ahpkit.customizations.standard_places import WORKSPACE
from ahpkit.host.trust import CLIENT, Runnable, Standing, Trust, fingerprints
from ahpkit.platform.files import CLOSE_ON_EXEC, NON_BLOCKING, followed, local_path
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.meta_keys import TRUST
from ahpkit.protocol.session.enablement import walk

FOLDER_LIMIT = 20_000
"""Folders that are searched when a directory is trusted, beginning with those near its top."""

CHANGED = "changed since it was trusted, so it does not run; look at it with `ahpkit trust show`"
"""The reason for a hook or server whose content is not the one that was trusted."""


_RUNS = ("hook", "mcpServer")

_PLACE = re.compile(r"^~(?=/)|\$\{?(HOME|PWD|CLAUDE_PROJECT_DIR|CLAUDE_PLUGIN_ROOT|PLUGIN_ROOT)\b\}?")

_VARIABLE = re.compile(r"\$\{?\w+(?::?[-=+?])?")
_USED = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_ASSIGNED = re.compile(r"(\w+)=(.*)", re.DOTALL)
_WILD = re.compile(r"[*?\[]")
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")
_MODULE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")

_MAX_WORDS = 1_000
_MAX_PLACES = 10
_MAX_ALTERNATIVES = 32
_MAX_MATCHES = 500
"""Limits for one command: words, folders that they name, ways to read one word, and matching files."""

_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "fish"})
_INTERPRETERS = _SHELLS | {"python", "python3", "node", "deno", "bun", "ruby", "perl", "php", "lua", "xargs", "source"}

_READS_DATA = frozenset(
    {
        *("echo", "printf", "cat", "tee", "grep", "egrep", "fgrep", "jq", "head", "tail", "wc", "sort", "uniq", "cut"),
        *("test", "[", "touch", "mkdir", "rm", "rmdir", "cp", "mv", "ls", "date", "sleep", "true", "false", "exit"),
    }
)
"""Programs that only read the files they are given: if such a file changes, the hook does not."""

_NOWHERE = "/nonexistent"

_IMPLIED = {
    **dict.fromkeys(("make", "gmake"), ("Makefile", "makefile", "GNUmakefile")),
    "just": ("justfile", "Justfile"),
    **dict.fromkeys(("npm", "npx", "pnpm", "yarn", "bun"), ("package.json",)),
    "task": ("Taskfile.yml", "Taskfile.yaml"),
    "rake": ("Rakefile", "rakefile"),
    **dict.fromkeys(("docker", "podman"), ("compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml")),
    "docker-compose": ("compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml"),
    "deno": ("deno.json", "deno.jsonc"),
    "mise": ("mise.toml", ".mise.toml"),
    "pytest": ("conftest.py",),
    "tox": ("tox.ini",),
    "nox": ("noxfile.py",),
    **dict.fromkeys(("invoke", "inv"), ("tasks.py",)),
    **dict.fromkeys(("uv", "uvx", "poetry", "pdm", "hatch"), ("pyproject.toml",)),
    "gradle": ("build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"),
    "mvn": ("pom.xml",),
    "ant": ("build.xml",),
    "cargo": ("Cargo.toml", "build.rs"),
    "bundle": ("Gemfile",),
    "foreman": ("Procfile",),
}
"""Programs that run the content of a file in the folder without naming the file, such as `make`."""

_NODE = frozenset({"node", "bun", "deno", "npx", "tsx", "ts-node", "nodemon"})
_NODE_ENDINGS = (".js", ".mjs", ".cjs", ".ts")
"""Endings that these programs add to a name. For a folder they use its `index.js`, or the file that its `package.json`
names."""

_RUNS_FOLDERS = frozenset({"run-parts"})
"""Programs that run each file of a folder."""


_GIT_RUNS = re.compile(r"^\s*\[\s*(?:(?:filter|merge)[\s.]+[^\s\]]|include)|hookspath", re.IGNORECASE | re.MULTILINE)
_GIT_SETTING = re.compile(r"^[ \t]*(?:\[[^\]\n]*\][ \t]*)?([A-Za-z][\w-]*)[ \t]*=[ \t]*(.*)$", re.MULTILINE)
"""Settings of Git that make it run a program, and the form of a setting."""

_MAX_TEXT = 256 * 1024
"""Bytes of a hook or of Git's settings that are looked at for names of files."""


@dataclass(frozen=True, slots=True)
class Surrounding:
    """The place where a hook or server would run."""

    workspace: str
    plugin_root: str | None = None
    home: str | None = None

    def filled(self, word: str) -> str:
        """A word in which variables for places are filled in, as a shell would do."""
        places = {"PWD": self.workspace, "CLAUDE_PROJECT_DIR": self.workspace, "HOME": self.home, None: self.home}
        return _PLACE.sub(lambda match: places.get(match[1], self.plugin_root) or match[0], word)

    def holds(self, path: str) -> bool:
        """Whether a file is in a place where people change files, unlike programs of the system."""
        return any(
            place is not None and path.startswith(f"{followed(place).rstrip('/')}/")
            for place in (self.workspace, self.plugin_root, self.home)
        )


def runnable_of(detail: HookDetail | ServerDetail, source: str, around: Surrounding) -> Runnable:
    """What a hook or a server would run, there and now."""
    if isinstance(detail, HookDetail):
        name = detail.event if detail.matcher is None else f"{detail.event} ({detail.matcher})"
        declaration: JsonObject = {"event": detail.event, "matcher": detail.matcher, "actions": list(detail.actions)}
        return Runnable("hook", name, source, declaration, fingerprints(_hook_files(detail, around)))
    named, data = _server_files(detail, around)
    return Runnable("server", detail.name, source, dict(detail.config), fingerprints(named), tuple(data))


def _hook_files(detail: HookDetail, around: Surrounding) -> Iterator[str]:
    for action in detail.actions:
        command = command_of(action, workspace=around.workspace, plugin_root=around.plugin_root, environment={})
        if command is not None:
            env = _texts(action.get("env"))
            data = ServerData((), env, command="", fill=around.filled)  # For example a file that it writes its log to.
            found = _named_files(command.argv, command.cwd, around, env)
            yield from (path for word, path in found if not data.holds(word, path))


def _server_files(detail: ServerDetail, around: Surrounding) -> tuple[list[str], list[str]]:
    """The files that a server names and may run, and the data files that could become such a file."""
    config = launch_config(detail, Surroundings(plugin_root=around.plugin_root, workspace=around.workspace))
    command = config.get("command")
    args = [word for word in config.get("args", ()) if isinstance(word, str)]
    env = _texts(config.get("env"))
    if not isinstance(command, str):
        command = ""
    cwd = config.get("cwd")
    folder = os.path.join(around.workspace, cwd) if isinstance(cwd, str) else around.workspace
    data = ServerData(args, env, command=command, fill=around.filled)
    found = [*_named_files([command, *args], folder, around, env)]
    run = [path for word, path in found if not data.holds(word, path)]
    return run, sorted({path for _, path in found if path not in run and may_become_setting(path)})


def _texts(env: Any) -> dict[str, str]:
    """Variables of a declaration, as far as they are texts."""
    given = cast("JsonObject", env) if isinstance(env, dict) else {}
    return {name: value for name, value in given.items() if isinstance(value, str)}


def _files(words: Sequence[str], cwd: str, around: Surrounding) -> Iterator[str]:
    """The files that the words of a command name: in the place where it runs, or in a folder that another word names,
    as after `cd`."""
    return (path for _, path in _named_files(words, cwd, around, {}))


def _named_files(
    words: Sequence[str], cwd: str, around: Surrounding, env: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """The files that a command and its variables name, each with the word that names it. Variables may name a program,
    folders with programs, or files that are loaded first."""
    arguments = (*named_by(words), *(piece for value in env.values() for piece in _pieces(value)))
    named = list(dict.fromkeys(_filled(islice(arguments, _MAX_WORDS), around, env)))
    programs = {os.path.basename(word) for word in named}
    runs_data = not _INTERPRETERS.isdisjoint(programs)
    folders = _folders_named(named, cwd, around)
    for place in (cwd, *folders):
        for word in named:
            paths = [*_paths(place, word, around if runs_data else None)]
            if not _NODE.isdisjoint(programs):
                paths += (found for path in paths[:] for found in _node_paths(path))
            yield from ((word, path) for path in _in_reach(paths, around))
    if not _RUNS_FOLDERS.isdisjoint(programs):
        for folder in folders:
            inside = islice(iglob(f"{escape(folder)}/*"), _MAX_MATCHES)
            yield from ((folder, path) for path in _in_reach(inside, around))


def _filled(words: Iterable[str], around: Surrounding, env: Mapping[str, str]) -> Iterator[str]:
    """The words, with the variables filled in that the declaration or the same line sets."""
    known = dict(env)
    for word in words:
        filled = around.filled(word)
        yield filled
        if (set_here := _ASSIGNED.fullmatch(filled)) is not None:
            known.setdefault(set_here[1], set_here[2])
        elif "$" in filled:
            yield _USED.sub(lambda match: known.get(match[1] or match[2], match[0]), filled)


def _folders_named(named: Sequence[str], cwd: str, around: Surrounding) -> list[str]:
    """Folders that words name, also one inside of another: `cd a; cd b`."""
    found: dict[str, None] = {}
    for word in named:
        for place in (cwd, *found):
            folder = os.path.normpath(os.path.join(place, word))
            if len(found) < _MAX_PLACES and folder != os.path.normpath(cwd) and _is_folder(folder, around):
                found[folder] = None
    return list(found)


def _in_reach(paths: Iterable[str], around: Surrounding) -> Iterator[str]:
    """The files among these that people change."""
    for path in paths:
        real = followed(path)
        if os.path.isfile(real) and (around.holds(real) or around.holds(os.path.normpath(path))):
            yield real


def _node_paths(path: str) -> Iterator[str]:
    """The paths that Node tries for a name: with an ending, or in a folder."""
    yield from (f"{path}{ending}" for ending in _NODE_ENDINGS)
    package = os.path.join(path, "package.json")
    if os.path.isdir(path):
        yield package
        for entry in ("index", *_entry_points(package)):
            file = os.path.normpath(os.path.join(path, entry))
            yield from (file, *(f"{file}{ending}" for ending in _NODE_ENDINGS))


def _entry_points(package: str) -> Iterator[str]:
    """The files that a package starts with."""
    try:
        manifest: Any = json.loads(_beginning(package))
    except (ValueError, RecursionError):
        return
    if isinstance(manifest, dict):
        for value in (cast("JsonObject", manifest).get("main"), cast("JsonObject", manifest).get("bin")):
            values: list[Any] = list(cast("JsonObject", value).values()) if isinstance(value, dict) else [value]
            yield from (one for one in values if isinstance(one, str) and "\0" not in one)


def _is_folder(path: str, around: Surrounding) -> bool:
    return os.path.isdir(path) and around.holds(f"{followed(path)}/")


def _paths(place: str, word: str, globs: Surrounding | None) -> Iterator[str]:
    """The possible paths that a word names, seen from a place: a shell may fill in variables, and Python takes modules.

    Wild cards are followed where `globs` is given, and only inside of it: `/*/*/*/x` would be a walk through the disk.
    """
    rest = _VARIABLE.sub("", word).strip("{}").lstrip("/")  # `$P/x.sh`, `$(pwd)/x.sh` and `${P:-x.sh}` are `x.sh`.
    for one in {word, rest, *islice(_alternatives(rest), _MAX_ALTERNATIVES)}:
        path = os.path.join(place, one)
        yield path
        whole = os.path.normpath(path)
        wild = _WILD.search(whole)
        if globs is not None and wild is not None and globs.holds(whole[: wild.start()]):
            yield from islice(iglob(whole), _MAX_MATCHES)
    if _MODULE.fullmatch(word):
        yield os.path.join(place, *word.split(".")) + ".py"
        yield os.path.join(place, *word.split("."), "__main__.py")


def _alternatives(word: str) -> Iterator[str]:
    """`{x,y}.sh` is `x.sh` and `y.sh`."""
    found = _BRACES.search(word)
    if found is None:
        yield word
        return
    for choice in found[1].split(","):
        yield from _alternatives(word[: found.start()] + choice + word[found.end() :])


def named_by(words: Sequence[str]) -> Iterator[str]:
    """The words of a command that may name a file which it runs. In doubt a word is included, but data and output files
    are not."""
    if len(words) > 2 and os.path.basename(words[0]) in _SHELLS and words[1].startswith("-") and "c" in words[1]:
        yield from _named_by_line(words[2])
        words = [words[0], *words[3:]]
    if words and os.path.basename(words[0]) not in _READS_DATA:
        for word in words:
            yield from _pieces(word)


def _named_by_line(text: str) -> Iterator[str]:
    """The same for lines of shell."""
    try:
        commands = [command for line in text.splitlines() for command in _commands(line)]
    except ValueError:  # Quotes over several lines: all words count.
        yield from _pieces(text)
        return
    filled_in = "$(" in text or "`" in text  # The output of such a command may be run.
    runs_data = filled_in or any(_program(command) in _INTERPRETERS for command in commands)
    for command in commands:
        for word in command:
            if runs_data or _program(command) not in _READS_DATA:
                yield from _pieces(word)


def _commands(line: str) -> Iterator[list[str]]:
    """The simple commands of a line, without files for output."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    command: list[str] = []
    output = False
    for token in lexer:
        if set(token) <= set(";|&()"):
            yield command
            command = []
        elif set(token) <= set("<>|&"):
            output = ">" in token
        elif output:
            output = False
        else:
            command.append(token)
    yield command


def _program(command: Sequence[str]) -> str:
    words = (word for word in command if "=" not in word)
    return os.path.basename(next(words, ""))


def _pieces(word: str) -> Iterator[str]:
    for piece in {word, *BETWEEN_WORDS.split(word)}:
        if piece and "\0" not in piece:
            yield piece
            yield from filter(None, piece.rpartition("=")[2].split(":") if "=" in piece or ":" in piece else ())
            yield from _IMPLIED.get(os.path.basename(piece), ())


# -- containers ----------------------------------------------------------------------------------------------------


def runnables_in(
    parsed: Parsed, around: Surrounding, *, container: Mapping[str, Any] | None = None
) -> dict[str, Runnable]:
    """The hooks and servers that a container would run, by the id of the child. `container`: its form for clients, if
    that has more."""
    found: dict[str, Runnable] = {}
    for child in parsed.container.get("children", ()):
        detail = parsed.details.get(child["id"])
        if isinstance(detail, HookDetail | ServerDetail):
            found[child["id"]] = runnable_of(detail, source_of(child["uri"], container or parsed.container), around)
    return found


def source_of(uri: str, container: Mapping[str, Any] | Container | None) -> str:
    """The place of a declaration: the path of a file on this machine, or the client's plugin."""
    if container is not None and "clientId" in container:
        return f"{CLIENT}{container['uri']}"
    path = local_path(uri)
    return uri if path is None else followed(path)


def surrounding_of(location: Location, home: Path | None) -> Surrounding:
    """The place where hooks and servers of a location run, when a session works in the folder that the location belongs
    to."""
    folder = None if home is None else str(home)
    if location.trusted:  # It runs in any workspace: files that it names there belong to the workspace.
        return Surrounding(_NOWHERE, str(location.root.absolute()) if location.place is None else None, folder)
    assert location.place is not None
    depth = len(Path(location.place.folder).parts)
    base = location.root.absolute().parents[depth - 1] if depth else location.root.absolute()
    return Surrounding(str(base), None, folder)


def runs_something(location: Location) -> bool:
    """Whether a location can contain hooks or servers."""
    return location.place is None or location.place.contents in _RUNS


# -- what the owner trusts -----------------------------------------------------------------------------------------


def runnables_at(path: Path, *, home: Path | None) -> list[Runnable]:
    """The hooks and servers of a directory and everything below it, or of one file with declarations. Blocks."""
    real = Path(followed(path))
    if real.is_file() and ".git" in real.parts:
        return [one for one in git_runnables(Path(*real.parts[: real.parts.index(".git")])) if one.source == str(real)]
    locations = _locations_of_file(real, home) if real.is_file() else _locations_below(real, home)
    found = _read(locations, home)
    found += (one for folder in _repositories(real) for one in git_runnables(folder))
    return [one for one in found if real.is_dir() or one.source == str(real)]


def own_runnables(home: Path | None, plugins: Sequence[Path]) -> list[Runnable]:
    """The hooks and servers of the user's own configuration: the home folders, and plugins that were named. Blocks."""
    return _read(filter(runs_something, locate(None, home=home, plugins=plugins)), home)


def _read(locations: Iterable[Location], home: Path | None) -> list[Runnable]:
    library, found = Library(), list[Runnable]()
    for location in locations:
        parsed = library.read(location)
        if parsed is not None:
            found += runnables_in(parsed, surrounding_of(location, home)).values()
    return found


def _locations_below(directory: Path, home: Path | None) -> Iterator[Location]:
    for folder in _folders(directory):
        yield from _locations_in(folder, directory, home)


def _locations_in(folder: Path, boundary: Path, home: Path | None) -> Iterator[Location]:
    found = [located(folder, place, boundary) for place in WORKSPACE]
    found += locate(None, home=home) if folder == home else ()
    for location in found:
        if runs_something(location) and location.root.exists():
            yield location


def _locations_of_file(file: Path, home: Path | None) -> Iterator[Location]:
    for folder in file.parents:
        for location in _locations_in(folder, folder, home):
            files = () if location.place is None else location.place.files
            if (file.parent == location.root and file.name in files) or (not files and location.root in file.parents):
                yield location


def _folders(directory: Path) -> Iterator[Path]:
    """A directory and the folders below it, those near the top first; links are not followed."""
    waiting = deque([directory])
    for _ in range(FOLDER_LIMIT):
        if not waiting:
            return
        folder = waiting.popleft()
        yield folder
        try:
            with os.scandir(folder) as entries:
                below = [one.name for one in entries if one.is_dir(follow_symlinks=False)]
        except OSError:
            continue
        waiting.extend(folder / name for name in sorted(below) if name not in IGNORED_FOLDERS)


# -- repositories --------------------------------------------------------------------------------------------------


def git_runnables(top: Path) -> list[Runnable]:
    """The programs that Git would run from a repository: its hooks, and the programs in its settings. Blocks."""
    around, settings = Surrounding(str(top)), _git_settings(top)
    found: list[Runnable] = []
    for path in _git_hooks(top, settings):
        real = followed(path)
        named = _files(["sh", "-c", _beginning(real)], str(top), around)
        found.append(Runnable("hook", f"git {path.name}", real, {}, fingerprints([real, *named])))
    if any(_GIT_RUNS.search(text) for text in settings.values()):
        words = [value for text in settings.values() for _, value in _git_values(text)]
        named = (file for word in words for file in _files(["sh", "-c", word], str(top), around))
        config = followed(top / ".git" / "config")
        found.append(Runnable("hook", "git filters", config, {}, fingerprints([*settings, *named])))
    return found


def _git_hooks(top: Path, settings: Mapping[str, str]) -> Iterator[Path]:
    """The hooks, where the settings say they are, and where they are without settings."""
    configured = [value for text in settings.values() for name, value in _git_values(text) if name == "hookspath"]
    for folder in dict.fromkeys([top / ".git" / "hooks", *(top / os.path.expanduser(value) for value in configured)]):
        try:
            paths = sorted(folder.iterdir())
        except (OSError, ValueError):
            continue
        yield from (path for path in paths if path.suffix != ".sample" and path.is_file() and os.access(path, os.X_OK))


def _git_settings(top: Path) -> dict[str, str]:
    """The files with a repository's own settings, also those that they include, with their texts."""
    waiting = [top / ".git" / "config", top / ".git" / "config.worktree"]
    found: dict[str, str] = {}
    while waiting and len(found) < _MAX_PLACES:
        file = waiting.pop(0)
        if (real := followed(file)) not in found:
            found[real] = _beginning(real)
            values = _git_values(found[real])
            waiting += [file.parent / os.path.expanduser(value) for name, value in values if name == "path"]
    return found


def _git_values(text: str) -> list[tuple[str, str]]:
    """The settings in a file of Git's, by their names in lower case, without their sections."""
    return [
        (match[1].lower(), value)
        for match in _GIT_SETTING.finditer(text.replace("\\\n", ""))
        for value in {match[2].strip().strip('"'), re.split("[#;]", match[2])[0].strip().strip('"')}
        if value and "\0" not in value
    ]


def _beginning(path: str) -> str:
    """The text at the beginning of a regular file; empty if there is no such file."""
    try:
        with open(os.open(path, os.O_RDONLY | NON_BLOCKING | CLOSE_ON_EXEC), "rb") as file:
            regular = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
            return file.read(_MAX_TEXT).decode("utf-8", "replace").replace("\0", " ") if regular else ""
    except OSError:
        return ""


def repository_is_trusted(folder: Path, trust: Trust) -> bool:
    """Whether Git may run the programs of a repository: all of them still have the trusted content."""
    real = Path(followed(folder))
    top = next((one for one in (real, *real.parents) if (one / ".git").is_dir()), None)
    found = [] if top is None else git_runnables(top)
    return bool(found) and all(trust.standing(one) == "trusted" for one in found)


def _repositories(directory: Path) -> Iterator[Path]:
    if directory.is_dir():
        yield from (folder for folder in _folders(directory) if (folder / ".git").is_dir())


class OwnerTrust:
    """The owner's decisions about what may run: trusted content, and the owner's own configuration as it was when the
    host started."""

    def __init__(self, trust: Trust, own: Trust | None = None) -> None:
        self.trust = trust
        self._own = own or Trust(None)

    def standing(self, runnable: Runnable) -> Standing:
        """The standing of a hook or server; `trusted` means that it may run. For clients it means that the owner
        consented."""
        if runnable.of_client:
            return "trusted" if self.trust.consented(runnable) else "unknown"
        found = {self.trust.standing(runnable), self._own.standing(runnable)}
        return "trusted" if "trusted" in found else "changed" if "changed" in found else "unknown"


def judged(in_force: InForce, trust: OwnerTrust, home: Path | None) -> InForce:
    """The customizations, with the ids of the hooks and servers that may run. Reads the files that these name."""
    standings: dict[str, Standing] = {}
    for runnable_id, runnable in offered(in_force, home).items():
        detail = in_force.details[runnable_id]
        consented = isinstance(detail, ServerDetail) and detail.consented
        standings[runnable_id] = "trusted" if consented else trust.standing(runnable)
    return replace(in_force, standings=standings)


def offered(in_force: InForce, home: Path | None) -> dict[str, Runnable]:
    """The hooks and servers in force that would run, by id."""
    found: dict[str, Runnable] = {}
    for placed in walk(in_force.customizations):
        detail = in_force.details.get(placed.entry["id"])
        if isinstance(detail, HookDetail | ServerDetail):
            container = placed.container
            plugin = in_force.root_of(placed) if container is not None and container["type"] == "plugin" else None
            workspace = _NOWHERE if container is None else in_force.workspace or _NOWHERE
            around = Surrounding(workspace, plugin, None if home is None else str(home))
            found[placed.entry["id"]] = runnable_of(detail, source_of(placed.entry["uri"], container), around)
    return found


def shown_with(parsed: Parsed, standings: Mapping[str, Standing]) -> Parsed:
    """A container whose children show whether they may run, and whether they changed since they were trusted."""
    children = [_with_standing(child, standings.get(child["id"])) for child in parsed.container.get("children", ())]
    changed = [child["name"] for child in children if standings.get(child["id"]) == "changed"]
    if not children:
        return parsed
    warnings = [Diagnostic("warning", "changed", f"`{name}` {CHANGED}") for name in changed]
    diagnostics = (*parsed.diagnostics, *warnings)
    container = {**parsed.container, "children": children, "load": load_state(diagnostics)}
    return replace(parsed, container=cast("Container", container), diagnostics=diagnostics)


def _with_standing(child: Any, standing: Standing | None) -> Any:
    if standing in (None, "trusted"):
        return child
    return {**child, "_meta": {**child.get("_meta", {}), TRUST: standing}}


__all__ = [
    "CHANGED",
    "OwnerTrust",
    "Surrounding",
    "judged",
    "named_by",
    "offered",
    "own_runnables",
    "repository_is_trusted",
    "runnable_of",
    "runnables_at",
    "runnables_in",
    "runs_something",
    "shown_with",
    "source_of",
    "surrounding_of",
]
