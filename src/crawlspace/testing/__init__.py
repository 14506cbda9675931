"""What others need to test their own parts: contract suites, a manual clock, a toy web.

Shipped with the package. May import anything; nothing else in the package imports it.
"""
