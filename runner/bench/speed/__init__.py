"""How fast the engine is, every ratio from runs that alternate in one process."""
