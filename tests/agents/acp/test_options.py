from typing import Any

from ahpkit.agents.acp.options import Change, SessionOptions

MODEL: dict[str, Any] = {
    "id": "model",
    "name": "Model",
    "category": "model",
    "type": "select",
    "currentValue": "m1",
    "options": [
        {"group": "g", "name": "Group", "options": [{"value": "m1", "name": "One", "description": "first"}]},
        {"value": "m2", "name": "Two"},
    ],
}
FAST: dict[str, Any] = {"id": "fast", "name": "Fast", "type": "boolean", "currentValue": False, "description": "Hurry"}
MODES: dict[str, Any] = {
    "currentModeId": "ask",
    "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code", "description": "Write"}],
}
MODELS: dict[str, Any] = {"currentModelId": "a", "availableModels": [{"modelId": "a", "name": "A"}, {"modelId": "b"}]}


def options(**reported: Any) -> SessionOptions:
    made = SessionOptions()
    made.take(reported)
    return made


def test_config_options_become_properties_that_may_change_in_mid_session() -> None:
    made = options(configOptions=[MODEL, FAST])

    assert made.schema["properties"] == {
        "model": {
            "type": "string",
            "title": "Model",
            "sessionMutable": True,
            "enum": ["m1", "m2"],
            "enumLabels": ["One", "Two"],
            "enumDescriptions": ["first", ""],
        },
        "fast": {"type": "boolean", "title": "Fast", "sessionMutable": True, "description": "Hurry"},
    }
    assert made.values == {"model": "m1", "fast": False}


def test_models_come_from_the_option_of_that_category_or_from_the_older_list() -> None:
    assert [model["id"] for model in options(configOptions=[MODEL], models=MODELS).models("p")] == ["m1", "m2"]
    assert options(models=MODELS).models("p") == [
        {"id": "a", "provider": "p", "name": "A"},
        {"id": "b", "provider": "p", "name": "b"},
    ]


def test_of_several_options_about_the_model_the_one_named_so_selects_it() -> None:
    maker: dict[str, Any] = {
        **MODEL,
        "id": "provider",
        "currentValue": "x",
        "options": [{"value": "x"}, {"value": "y"}],
    }
    made = options(configOptions=[maker, MODEL])

    assert [model["id"] for model in made.models("p")] == ["m1", "m2"]
    assert made.changes(model={"id": "m2"}, config={}) == [
        Change("session/set_config_option", {"configId": "model", "value": "m2"})
    ]


def test_modes_that_an_option_has_as_its_choices_are_shown_once() -> None:
    levels: dict[str, Any] = {"id": "level", "category": "thought_level", "type": "select", "currentValue": "ask"}
    made = options(modes=MODES, configOptions=[{**levels, "options": [{"value": "code"}, {"value": "ask"}]}])
    made.mode_changed("code")

    assert made.values == {"level": "code"}


def test_modes_are_a_property_unless_an_option_says_the_same() -> None:
    assert options(modes=MODES).values == {"mode": "ask"}
    assert options(modes=MODES).schema["properties"]["mode"].get("enumLabels") == ["Ask", "Code"]
    newer: dict[str, Any] = {**MODEL, "id": "m", "category": "mode", "currentValue": "m2"}
    assert options(modes=MODES, configOptions=[newer]).values == {"m": "m2"}


def test_a_change_of_mode_reaches_whichever_way_it_is_shown() -> None:
    newer: dict[str, Any] = {**MODEL, "id": "m", "category": "mode"}
    made = options(modes=MODES, configOptions=[newer])

    made.mode_changed("code")

    assert made.values == {"m": "code"}


def test_only_what_differs_and_what_the_agent_knows_is_changed() -> None:
    made = options(configOptions=[MODEL, FAST], modes=MODES)

    assert made.changes(model=None, config={"fast": False, "mode": "ask", "other": 1, "model": "unheard-of"}) == []
    assert made.changes(model={"id": "m2"}, config={"fast": True, "mode": "code"}) == [
        Change("session/set_config_option", {"configId": "model", "value": "m2"}),
        Change("session/set_config_option", {"configId": "fast", "value": True, "type": "boolean"}),
        Change("session/set_mode", {"modeId": "code"}),
    ]


def test_a_model_selection_carries_its_own_settings() -> None:
    effort: dict[str, Any] = {**MODEL, "id": "effort", "category": "thought_level"}

    changes = options(configOptions=[effort]).changes(model={"id": "x", "config": {"effort": "m2"}}, config={})

    assert changes == [Change("session/set_config_option", {"configId": "effort", "value": "m2"})]


def test_the_older_model_list_is_changed_by_its_own_method_once() -> None:
    made = options(models=MODELS)
    [change] = made.changes(model={"id": "b"}, config={})

    made.changed(change)

    assert change == Change("session/set_model", {"modelId": "b"})
    assert made.changes(model={"id": "b"}, config={}) == []


def test_malformed_reports_change_nothing() -> None:
    made = options(configOptions=[{"name": "no id"}, "x"], modes="x", models=[1])

    assert made.values == {}
    assert made.models("p") == []
    assert made.schema == {"type": "object", "properties": {}}
