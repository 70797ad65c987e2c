import pytest

from ahpkit.customizations.globs import Paths, is_universal


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("**/*.ts", "a.ts", True),
        ("**/*.ts", "src/deep/a.ts", True),
        ("**/*.ts", "a.tsx", False),
        ("*.ts", "src/a.ts", True),
        ("/*.ts", "src/a.ts", False),
        ("src/*.ts", "src/a.ts", True),
        ("src/*.ts", "src/b/a.ts", False),
        ("src/**", "src/b/a.ts", True),
        ("src/", "src/b/a.ts", True),
        ("./src/**/*.py", "src/a.py", True),
        ("**/*.{ts,tsx}", "x/a.tsx", True),
        ("{src,test}/**/*.{a,{b,c}}", "test/x/y.c", True),
        ("{src,test}/**/*.{a,{b,c}}", "lib/x/y.c", False),
        ("a?c", "abc", True),
        ("[ab].md", "b.md", True),
        ("**", "any/thing", True),
        ("**/**/x", "x", True),
        ("src/{unclosed", "src/{unclosed", True),
        ("", "x", False),
    ],
)
def test_patterns_match_as_people_mean_them(pattern: str, path: str, matches: bool) -> None:
    assert Paths([path]).match([pattern]) is matches


@pytest.mark.parametrize("pattern", ["**", "*", "**/*", " ** "])
def test_some_patterns_mean_every_file(pattern: str) -> None:
    assert is_universal(pattern)
    assert not is_universal("src/**")


@pytest.mark.parametrize("pattern", ["*a" * 60 + "b", "**/" * 200 + "b", "{a,b}" * 60, "{" * 500])
def test_patterns_made_to_hurt_end(pattern: str) -> None:
    assert Paths(["a" * 200 + "/" + "a/" * 100 + "c"]).match([pattern]) is False


def test_what_a_message_costs_is_bounded_whatever_the_workspace_has() -> None:
    """Counted in comparisons, not in seconds: they are what it costs."""
    paths = Paths([f"src/{n}/a/b/c.py" for n in range(200)], budget=10_000)
    rules = [[f"src/**/{{{','.join(f'a{n}*' for n in range(64))}}}/**/{rule}*.py"] for rule in range(1_500)]
    assert not any(paths.match(globs) for globs in rules)
    assert -1_000 < paths.budget <= 0


def test_a_pattern_is_dismissed_by_its_ending() -> None:
    paths = Paths(["src/main.py", "docs/index.md"])
    left = paths.budget
    assert not paths.match(["**/*.ts", "src/**/*.{js,jsx,rs}", "Makefile", "**/*_test.go"])
    assert paths.budget == left
    assert paths.match(["**/*.ts", "**/ma*.py"])


@pytest.mark.parametrize("pattern", ["{a," * 500 + "b" + "}" * 500, "{a}" * 300, "a" * 5_000, "*" * 900 + "b"])
def test_a_hostile_pattern_matches_nothing_and_costs_little(pattern: str) -> None:
    paths = Paths(["a" * 500])
    assert paths.match([pattern]) is False
    assert paths.budget > 0
