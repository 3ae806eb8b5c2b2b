"""Where journals are kept: a folder, or an object store."""
