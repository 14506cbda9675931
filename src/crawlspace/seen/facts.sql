-- How long the keys are, and how many there are.
SELECT key_bytes, known FROM facts;
