"""The spine: store, dispatcher, log and fan-out. Every action passes through it."""
