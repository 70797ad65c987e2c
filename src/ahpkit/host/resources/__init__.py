"""Files and content that clients may reach through the host."""
