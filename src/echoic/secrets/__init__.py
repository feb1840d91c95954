"""Secrets: what is never kept. Finds them in what was said and puts a marker in their place. No I/O."""

from __future__ import annotations
