"""What a page costs in CPU, memory and disk, beside the crawlers that one would take instead.

Run by `make bench`. Nothing here is installed with the package, and nothing in the package knows of it. What is
measured comes from outside the programs measured: from the operating system's accounts of their processes, and from
the web server's log. What a program says of itself is never used.
"""
