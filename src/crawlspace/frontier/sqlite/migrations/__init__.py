"""The numbered steps of the store's format; only forward, never changed once released."""
