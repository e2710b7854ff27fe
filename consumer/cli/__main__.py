"""`python -m consumer.cli`: the command line without an installed command."""

from consumer.cli.main import main

if __name__ == "__main__":
    main()
