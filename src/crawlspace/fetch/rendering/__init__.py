"""Pages drawn by a real browser: how it is started, what it may reach, and what is taken from it.

Nothing a browser does here reaches the network but through `gate`, which holds every connection against the address
guard. Only `chromium` knows the library that drives it (extra `browser`).
"""
