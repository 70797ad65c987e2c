"""What the host tells about its own work: traces, metrics and logs, for clients that subscribe and for a scraper."""
