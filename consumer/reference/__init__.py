"""The pages of reference in `docs/`, made from what they are about: config model, commands, OpenAPI document.

`python -m consumer.reference` writes all of them below the current directory; a test fails while one is out of date.
"""

from consumer.reference import api_page, cli_page, config_page

PAGES = {"configuration": config_page.page, "cli": cli_page.page, "api": api_page.page}
"""By the file's name, without `.md`."""
