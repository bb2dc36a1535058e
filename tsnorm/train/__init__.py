"""Training on one rank or many."""
