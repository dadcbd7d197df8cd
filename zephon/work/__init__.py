"""What to train on and in which order: references, no I/O."""
