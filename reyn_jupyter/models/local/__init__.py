"""Language models from a GGUF file: llama.cpp's server in a process beside this one, and what is said to it."""
