"""Runs a plan: segments of stateless operators, then policies on integers, then buffers."""
