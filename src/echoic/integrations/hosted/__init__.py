"""Echoic behind hosted voice platforms: the signed webhooks of Vapi, Retell and ElevenLabs."""
