"""``python -m runner`` is the same as ``runner``."""

from runner.cli import main

if __name__ == "__main__":
    main()
