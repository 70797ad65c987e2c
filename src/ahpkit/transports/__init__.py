"""Ways messages travel: WebSocket, Unix socket, stdio, memory. Start at `websocket.serve_http` and `connect`."""
