"""GGUF models in a worker process. Only `worker` and `engine` touch native code."""
