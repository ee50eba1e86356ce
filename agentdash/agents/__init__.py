"""Adapters: one folder or TOML file per worker CLI."""
