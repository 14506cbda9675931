"""Pure readers of what sites send: encodings, links, declarations about a page, and robots.txt."""
