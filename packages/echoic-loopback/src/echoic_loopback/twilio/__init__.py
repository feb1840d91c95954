"""A caller that speaks Twilio's protocols to a server of yours."""

from echoic_loopback.twilio.simulator import CallFailed, SimulatedCall

__all__ = ["CallFailed", "SimulatedCall"]
