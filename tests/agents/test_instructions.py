from ahpkit.agents.instructions import instructions
from ahpkit.host.agent import SkillOffer, TurnContext


def test_instructions_name_rules_skills_and_agents() -> None:
    context = TurnContext(
        system_prompt="Be brief.",
        rules=["Use tabs."],
        skills=[SkillOffer("pdf", "Reads PDFs", "file:///pdf/SKILL.md")],
        agents=[SkillOffer("reviewer", "Reviews", "file:///r.md")],
    )

    told = instructions(context)

    assert "Be brief." in told
    assert "Use tabs." in told
    assert "- pdf: Reads PDFs (file:///pdf/SKILL.md)" in told
    assert "- reviewer: Reviews" in told
    assert instructions(TurnContext()) == ""
