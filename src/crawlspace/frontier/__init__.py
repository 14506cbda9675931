"""The frontier: every URL known, its state, and the order in which the queued ones leave.

One package for each database. They share the settings and the reader of `.sql` files, and do not know each other.
"""
