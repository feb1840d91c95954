"""A stand-in for a MongoDB server that speaks its wire protocol to the real driver, for tests.

    with MongoServer() as server:
        store = MongoDBStore(server.url("echoic"))

It is no MongoDB. It computes what it is asked for: documents, unique indexes, transactions with snapshots
and conflicts, change streams, and `$search`, `$vectorSearch` and `$rankFusion` by the server's grammar. It
refuses, with the server's codes, what a server refuses, and everything it does not know: so a test that
passes here says that valid commands were sent, not that MongoDB answers them so. Needs pymongo.
"""

from __future__ import annotations

from echoic_loopback.mongodb.refusals import Refusal
from echoic_loopback.mongodb.server import MongoServer

__all__ = ["MongoServer", "Refusal"]
