"""Language models: what is said to them and by them, and (later) who is asked."""
