"""What commands print: read it while it comes, or later."""
