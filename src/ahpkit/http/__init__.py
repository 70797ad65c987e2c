"""The host's one port: HTTP routes and the WebSocket, behind one gate. Start at `server.serve_http`."""
