"""Transports for messages: WebSocket, Unix socket, stdio, memory. Start at `connect`; the server is
`ahpkit.http.server`."""
