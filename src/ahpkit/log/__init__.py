"""The ordered durable log and what it is stored in. Start at `log.Log` and `datadir.open_storage`."""
