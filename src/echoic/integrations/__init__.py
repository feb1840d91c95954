"""Echoic in the frameworks that voice agents are built with: one module for each, which imports it.

Nothing is imported here, and nothing else of Echoic imports a framework. An extra of the same name installs
it: `pip install 'echoic[mcp]'` for `echoic.integrations.mcp`.
"""
