"""`python -m crawlspace` is the `crawlspace` command."""

from crawlspace.cli import main

if __name__ == "__main__":
    main()
