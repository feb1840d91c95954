"""Measurements: one module each, `python -m benchmarks.NAME`, results in benchmarks/results/NAME.json."""
