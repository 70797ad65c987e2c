from ahpkit.customizations.toggles import ToggleMemory
from ahpkit.host.spine.durable_values import DurableValues


class Log:
    def set_value(self, key: str, data: bytes | None) -> None: ...


def test_a_session_takes_over_what_was_left_in_its_workspace() -> None:
    values = DurableValues(Log().set_value)
    memory = ToggleMemory(values, remember=True)
    memory.set("s1", "file:///w", "skill-1", False)
    assert memory.of_session("s2", "file:///w") == {"skill-1": False}
    assert memory.of_session("s3", "file:///other") == {}


def test_sessions_do_not_change_each_other() -> None:
    memory = ToggleMemory(DurableValues(Log().set_value), remember=True)
    memory.set("s1", "file:///w", "a", False)
    memory.of_session("s2", "file:///w")
    memory.set("s1", "file:///w", "a", True)
    assert memory.of_session("s2", "file:///w") == {"a": False}
    assert memory.of_session("s3", "file:///w") == {"a": True}


def test_without_remembering_a_workspace_has_no_toggles() -> None:
    memory = ToggleMemory(DurableValues(Log().set_value), remember=False)
    memory.set("s1", "file:///w", "a", False)
    assert memory.of_session("s1", "file:///w") == {"a": False}
    assert memory.of_session("s2", "file:///w") == {}


def test_a_disposed_session_leaves_nothing_but_the_workspaces() -> None:
    values = DurableValues(Log().set_value)
    memory = ToggleMemory(values, remember=True)
    memory.set("s1", "file:///w", "a", False)
    memory.forget_session("s1")
    assert [key for key, _ in values.items("customizations/")] == ["customizations/workspace/file:///w"]
