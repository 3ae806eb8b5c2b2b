"""Parts of `bench_read`: what is read, who reads it, what it costs."""
