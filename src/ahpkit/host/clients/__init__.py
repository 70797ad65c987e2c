"""Clients: their connections, what they may ask, and the one way out to each. Knows no agent."""
