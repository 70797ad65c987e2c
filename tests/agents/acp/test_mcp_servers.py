from ahpkit.agents.acp.mcp_servers import mcp_servers
from ahpkit.host.agent import McpServerOffer

LOCAL = McpServerOffer("1", "local", {"command": "srv", "args": ["-x"], "env": {"A": "b"}})
REMOTE = McpServerOffer("2", "remote", {"type": "http", "url": "https://x/mcp", "headers": {"H": "v"}})
EVENTS = McpServerOffer("3", "events", {"type": "sse", "url": "https://x/sse"})


def test_servers_are_told_in_the_form_acp_has() -> None:
    assert mcp_servers([LOCAL, REMOTE, EVENTS], {"http": True, "sse": True}) == [
        {"name": "local", "command": "srv", "args": ["-x"], "env": [{"name": "A", "value": "b"}]},
        {"type": "http", "name": "remote", "url": "https://x/mcp", "headers": [{"name": "H", "value": "v"}]},
        {"type": "sse", "name": "events", "url": "https://x/sse", "headers": []},
    ]


def test_a_server_the_agent_cannot_reach_is_left_out() -> None:
    assert [server["name"] for server in mcp_servers([LOCAL, REMOTE, EVENTS], {})] == ["local"]
    assert mcp_servers([McpServerOffer("4", "broken", {})], {}) == []


def test_the_host_is_reached_by_url_where_the_agent_can_and_by_its_program_else() -> None:
    web = {"url": "http://127.0.0.1:1/mcp", "headers": {"Authorization": "Bearer s"}}
    offer = McpServerOffer("ahp", "ahp", {"command": "python", "args": [], "env": {}, "http": web})
    [by_url] = mcp_servers([offer], {"http": True})
    headers = [{"name": "Authorization", "value": "Bearer s"}]
    assert by_url == {"type": "http", "name": "ahp", "url": "http://127.0.0.1:1/mcp", "headers": headers}
    [by_program] = mcp_servers([offer], {})
    assert by_program["command"] == "python"
