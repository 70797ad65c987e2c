"""Reports the host's own work as traces, metrics and logs, for clients that subscribe and for a scraper."""
