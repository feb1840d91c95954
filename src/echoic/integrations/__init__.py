"""Echoic in frameworks for voice agents: one module for each, the only one that imports the framework.

An extra of the same name installs it: `pip install 'echoic[mcp]'` for `echoic.integrations.mcp`.
"""
