"""`python -m npstream` is the command `npstream`."""

from npstream.cli import main

main()
