"""Makes a plan: frozen logical nodes, rewrites, lowering, fusions. Never sees data."""
