"""Tools made at run time: what they are, where they are kept, what they did, and when one is worth making."""
