"""What a view may ask of the kernel: one file a subject."""
