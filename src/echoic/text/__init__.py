"""How people write and say numbers and letters, and tables of words. Pure; knows nothing of memories."""
