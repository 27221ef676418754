"""One file for each shell that Tarmac can drive: what we type, and what it writes."""
