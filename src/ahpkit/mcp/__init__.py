"""MCP: runs the users' servers for sessions, and offers the host to each agent as one server.

`server` is one running server, `fleet` those of one session, `gateway` the server that agents see, `relay` the command
that connects an agent's pipes to it. Importing this package loads no SDK: the modules do that when they are used.
"""
