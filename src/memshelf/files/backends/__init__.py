"""Where a file memory is kept."""
