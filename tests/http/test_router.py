from __future__ import annotations

import pytest

from ahpkit.http.router import Receive, Router, Scope, Send


async def app(scope: Scope, receive: Receive, send: Send) -> None: ...


def found(router: Router, path: str) -> str | None:
    route = router.find(path)
    return None if route is None else route.prefix


def test_the_longest_prefix_counts() -> None:
    router = Router()
    for prefix in ("/a", "/a/b", "/c"):
        router.mount(prefix, app)
    paths = ["/a", "/a/", "/a/x", "/a/b", "/a/b/", "/a/b/c/d", "/a/bc", "/ab", "/c//x", "/", "", "/d/a"]
    assert [found(router, path) for path in paths] == [
        *("/a", "/a", "/a", "/a/b", "/a/b", "/a/b", "/a"),
        *(None, "/c", None, None, None),
    ]


def test_the_root_takes_what_is_left() -> None:
    router = Router()
    router.mount("/", app)
    router.mount("/a", app)
    assert [found(router, path) for path in ("/", "", "/x", "/a/x")] == ["", "", "", "/a"]


@pytest.mark.parametrize("prefix", ["", "a", "/a/", "//a", "/a//b"])
def test_a_malformed_prefix_is_refused(prefix: str) -> None:
    with pytest.raises(ValueError, match="not a prefix"):
        Router().mount(prefix, app)


def test_a_prefix_is_mounted_once() -> None:
    router = Router()
    router.mount("/a", app)
    with pytest.raises(ValueError, match="mounted already"):
        router.mount("/a", app)
