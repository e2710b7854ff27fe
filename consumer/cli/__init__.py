"""The command line: `main` and a module a group of commands, each loaded when it is called.

Which error ends with which exit code says its class in `ordering.errors`.
"""
