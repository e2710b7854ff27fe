"""The Open API: its types, its errors, its routes."""
