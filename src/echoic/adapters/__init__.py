"""Channels a caller comes in by, each translated to memory and an agent, and back. They decide nothing.

`echoic.adapters.twilio` is the telephone, `echoic.adapters.browser` a web page. They do not know one
another's protocols, nor the HTTP server above them.
"""
