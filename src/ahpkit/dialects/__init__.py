"""Dialects: one module per protocol generation, between the canonical protocol and a client of that generation."""
