from ahpkit.customizations.diagnostics import Diagnostic, Report, load_state, summary
from support import requirement


@requirement("customizations:load:kinds")
def test_the_worst_finding_decides_the_load_state() -> None:
    report = Report()
    assert load_state(report.items) == {"kind": "loaded"}
    report.note("odd", "it is odd")
    assert load_state(report.items) == {"kind": "loaded"}
    report.warn("cut", "it was cut", "a.md", 3)
    assert load_state(report.items) == {"kind": "degraded", "message": "a.md:3: it was cut"}
    report.error("gone", "it is gone")
    assert load_state(report.items) == {"kind": "error", "message": "it is gone"}
    assert report.failed


def test_a_summary_stays_short() -> None:
    items = [Diagnostic("warning", f"code{number}", "y" * 900, f"{number}.md") for number in range(10)]
    text = summary(items)
    assert len(text) < 1_050
    assert text.endswith("; and 7 more")


def test_many_findings_of_a_kind_are_one_line() -> None:
    items = [Diagnostic("warning", "same", "is odd", f"{number}.md") for number in range(1_628)]
    assert summary([*items, Diagnostic("warning", "other", "is broken", "x.md")]) == (
        "1628 times: is odd: 0.md, 1.md, 10.md and 1625 more; x.md: is broken"
    )
    assert summary(items[:2]) == "0.md: is odd; 1.md: is odd"


def test_paths_from_strangers_are_shown_safely() -> None:
    assert str(Diagnostic("note", "x", "m", "a\udcff\u202e\x1b.md", 1)) == "a.md:1: m"
