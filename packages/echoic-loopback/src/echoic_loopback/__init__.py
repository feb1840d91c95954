"""Stand-ins on this machine for what a voice agent talks to.

`openai_realtime` and `gemini_live` are providers that follow a script (`realtime`), `twilio` is a caller,
`mongodb` a database server, and `disks` are disks that fail.
"""
