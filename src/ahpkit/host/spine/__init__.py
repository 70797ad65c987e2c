"""The spine: store, dispatcher, log and fan-out. Every action takes this way."""
