"""Files and what lies in them: without links, under locks, for a while, as databases, by patterns."""
