"""Channels by which callers arrive, each translated to memory and an agent. They decide nothing.

`echoic.adapters.twilio` is the telephone, `echoic.adapters.browser` a web page. They know neither each
other's protocols nor the HTTP server above them.
"""
