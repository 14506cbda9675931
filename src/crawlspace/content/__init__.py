"""Identity of content: when two bodies are the same document. Pure."""
