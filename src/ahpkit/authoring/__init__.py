"""Canvases and tools as Python code: written once, run in a host, in a client or in a process of their own."""
