"""Grade answers by a language model, trial by trial, after they were stored."""
