"""The `whimbrel` program as a Python package.

With the official SDK: `ClaudeAgentOptions(cli_path=whimbrel.cli_path())`.
"""

from pathlib import Path

__version__ = "@VERSION@"

__all__ = ["__version__", "cli_path"]


def cli_path() -> str:
    """Return the path of the `whimbrel` program in this package."""
    path = Path(__file__).resolve().parent / "bin" / "whimbrel"
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist. Install the package again, from a wheel for this system.")
    return str(path)
