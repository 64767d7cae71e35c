"""The execution of plans: order, retries, deadline, the file of a run, and workflows kept as files."""
