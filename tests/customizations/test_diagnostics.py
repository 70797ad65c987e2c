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
    items = [Diagnostic("warning", "x", "y" * 900, f"{number}.md") for number in range(10)]
    text = summary(items)
    assert len(text) < 1_050
    assert text.endswith("; and 7 more")


def test_paths_from_strangers_are_shown_safely() -> None:
    assert str(Diagnostic("note", "x", "m", "a\udcff\u202e\x1b.md", 1)) == "a.md:1: m"
