"""One module per job system: how to prepare it, enqueue, run its worker, and ask what is left."""
