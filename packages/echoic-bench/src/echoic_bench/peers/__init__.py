"""Other memories beside ours: the same texts, the same vectors, the same questions, in one run.

Each is driven through its own public interface, in its durable form where it has one, and is told all vectors
beforehand: what is timed is everything but the encoding. None is a dependency; what is not installed is left
out with the line that installs it.
"""
