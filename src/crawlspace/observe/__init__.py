"""What a crawl looks like to a person: figures, words, and text that is safe to show."""
