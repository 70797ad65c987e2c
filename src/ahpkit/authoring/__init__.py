"""Lets people write canvases and tools as Python code that runs in a host, in a client or in a separate process."""
