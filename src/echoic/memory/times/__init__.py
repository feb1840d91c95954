"""What a question says about time: when something was said, whether the past is meant, before or after what.

Start reading at `phrases.spans_of_phrase`. Nothing here searches or stores.
"""
