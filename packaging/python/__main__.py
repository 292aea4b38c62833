"""`python -m whimbrel` and the script `whimbrel`: replace this process by the program."""

import os
import sys

from whimbrel import cli_path


def main() -> None:
    path = cli_path()
    os.execv(path, ["whimbrel", *sys.argv[1:]])


if __name__ == "__main__":
    main()
