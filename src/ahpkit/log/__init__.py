"""The ordered durable log and what it is stored in. Start at `log.Log` and `durability.open_storage`."""
