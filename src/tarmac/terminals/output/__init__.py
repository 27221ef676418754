"""What commands print: read it while it comes, or later, and tell whether more is likely to come."""
