"""`python -m echoic.cli`: the same as `echoic`, for when scripts are not on the path."""

import sys

from echoic.cli import main

if __name__ == "__main__":
    sys.exit(main())
