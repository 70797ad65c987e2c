"""Clients: their connections, the commands they may send, and the outlet through which each is sent everything."""
