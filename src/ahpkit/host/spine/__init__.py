"""The spine: store, dispatcher, log and fan-out, the way every action takes. Knows no client and no agent."""
