"""The raw layer: what the web sent, byte for byte, in the archival standard (WARC 1.1)."""
