"""Measuring a memory: what it finds, how fast, how well it hears, and beside others. `echoic bench` runs it.

Not a memory and no part of one: nothing else imports this. What is measured is the product itself, a
`MemoryService` over a real store; figures are of questions whose answers somebody has labelled.
"""
