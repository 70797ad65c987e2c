from ahpkit.agents.acp.limits import MAX_NAME, MAX_PARTS, MAX_TURN_TEXT, Allowance, cut, short


def test_a_long_text_keeps_its_beginning_and_its_end_and_says_what_is_missing() -> None:
    assert cut("short", 10) == "short"
    assert cut("a" * 50 + "b" * 50, 20) == "a" * 10 + "\n[… 80 characters are not shown …]\n" + "b" * 10


def test_a_long_name_ends_with_an_ellipsis() -> None:
    assert short("name") == "name"
    assert short("n" * 2000) == "n" * (MAX_NAME - 1) + "…"


def test_an_allowance_ends_with_its_parts() -> None:
    allowance = Allowance()
    assert sum(allowance.part() for _ in range(2 * MAX_PARTS)) == MAX_PARTS - 1
    assert allowance.words("x") == ""


def test_an_allowance_ends_with_its_text() -> None:
    allowance = Allowance()
    assert len(allowance.words("x" * (MAX_TURN_TEXT + 1))) == MAX_TURN_TEXT
    assert not allowance.left
    assert not allowance.part()
