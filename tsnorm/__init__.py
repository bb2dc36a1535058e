"""tsnorm: every batch carries both static feature fields."""
