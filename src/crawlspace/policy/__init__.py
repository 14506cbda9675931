"""The crawl's decisions, as pure functions from values to values.

`scope` and `patterns` say what may be asked for, `priority` in which order, `outcome` what an answer means, `retry`
whether and when to ask again, `pace` how long to leave a host alone, and `decide` how a leased URL ends: read that
one first. Nothing here performs anything: no I/O, no clock, and chance comes as an argument.
"""
