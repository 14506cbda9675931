"""The numbered steps from format to format."""
