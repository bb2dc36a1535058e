"""The `tsnorm` command."""
