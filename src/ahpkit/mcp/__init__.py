"""MCP: runs the users' servers for sessions, and offers the host to each agent as one server.

`server` is one running server, `running_servers` those of one session, `gateway` the server that agents see. Agents
reach it through `gateway_socket`, with the command `handover`, or through `gateway_http`. Importing this package does
not load the SDK; the modules load it when they are used.
"""
