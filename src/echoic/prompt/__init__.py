"""Text for a model: the block a session starts with, and answers. Quoted data, within a budget. Pure."""
