import pytest

from ahpkit.customizations.globs import any_match, is_universal


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
    assert any_match([pattern], [path]) is matches


@pytest.mark.parametrize("pattern", ["**", "*", "**/*", " ** "])
def test_some_patterns_mean_every_file(pattern: str) -> None:
    assert is_universal(pattern)
    assert not is_universal("src/**")


@pytest.mark.parametrize("pattern", ["*a" * 60 + "b", "**/" * 200 + "b", "{a,b}" * 60, "{" * 500])
def test_patterns_made_to_hurt_end(pattern: str) -> None:
    assert any_match([pattern], ["a" * 200 + "/" + "a/" * 100 + "c"]) is False
