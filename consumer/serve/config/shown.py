"""What of a changefeed's config is shown: the keys that are listed here; everything else is `***`.

A reference is shown as it is, for it names a secret and holds none.
"""

import re
from typing import Any

from consumer.config.text import FILE_MARK, VARIABLE
from consumer.serve.config.references import HIDDEN, URIS

_SHOWN = re.compile(
    r"changefeed|source\.(bootstrap-servers|topics|storage|archive|archive-protocol|protocol|start-ts|time-zone"
    r"|unproven-beginning|equal-rows|ignored-watermarks|lossy-values|watermark-(changefeed|keyspace)|schema-registry-ca|avro-enable-watermark)"
    r"|source\.claim-check\.(locations|map\..+)"
    r"|target\.(consistency|invalid-dates|volatile-defaults|cdc-write-source|concurrent-indexes|on-drift)"
    r"|target\.audit(-days)?"
    r"|(limits|quarantine|filter|proof)\..+|sink\.(dispatchers|column-selectors)(\..+)?"
    r"|sink\.column-masks(\.(matcher|columns|hash-length))?"
    r"|source\.kafka\.(security\.protocol|sasl\.mechanisms?|sasl\.username|sasl\.oauthbearer\.(method|client\.id|scope)"
    r"|(ssl|https)\.(ca|crl|certificate|key)\.location|ssl\.endpoint\.identification\.algorithm"
    r"|enable\.ssl\.certificate\.verification|client\.(id|rack)|(socket|fetch|queued|reconnect)\..+)"
    r"|source\.(archive-)?csv\..+|source\.(storage|archive)-options\.(region|endpoint|bucket|container-name|timeout|allow-http)"
    r"|(source\.claim-check\.|target\.warehouse-)options\.(region|endpoint|bucket|container-name|timeout|allow-http)"
    r"|spark\.(master|spark\.(ui\.enabled|(driver|executor)\.(memory|cores|instances)|cores\.max|local\.dir|task\..+))"
)
_LOGIN = re.compile(r"(?P<scheme>[a-zA-Z][a-zA-Z0-9+.-]*://)(?P<login>.*@)?(?P<rest>.*)", re.DOTALL)
_OPTION = re.compile(r"(?P<name>[A-Za-z_-]+)=(?P<value>[^&]*)")
_PLAIN_OPTIONS = re.compile(
    r"ssl[_-]?(mode|ca|cert|key|rootcert|crl|ca_certs|certfile|keyfile|check_hostname|cert_reqs)"
    r"|server-public-key-path|get-server-public-key"
)
_PLAIN_PLACE = re.compile(r"warehouse=[^@]*")
"""Of an Iceberg target; a valid one holds no login."""


def shown(values: Any, key: str = "") -> Any:
    """The config as it may be shown."""
    if isinstance(values, dict):
        return {str(name): shown(inner, f"{key}.{name}" if key else str(name)) for name, inner in values.items()}
    if isinstance(values, list):
        return [shown(inner, key) for inner in values]
    if isinstance(values, bool | int | float) and _SHOWN.fullmatch(key):
        return values
    return _text(str(values), key)


def _text(value: str, key: str) -> str:
    if VARIABLE.fullmatch(value) or (value.startswith(FILE_MARK) and not value.startswith("file://")):
        return value
    if key in URIS or (_SHOWN.fullmatch(key) and "://" in value):
        return _uri(value)
    return value if _SHOWN.fullmatch(key) else HIDDEN


def _uri(value: str) -> str:
    """A URI without its password, whatever characters that holds, and without options that nobody knows."""
    match = _LOGIN.fullmatch(value)
    if match is None:
        return HIDDEN if value else value
    user, colon, password = (match["login"] or "").removesuffix("@").partition(":")
    login = f"{user}:{password if VARIABLE.fullmatch(password) else HIDDEN}@" if colon else match["login"] or ""
    place, mark, query = match["rest"].partition("?")
    return f"{match['scheme']}{login}{place}{mark}{'&'.join(map(_option, query.split('&')))}"


def _option(text: str) -> str:
    match = _OPTION.fullmatch(text)
    if _PLAIN_PLACE.fullmatch(text):
        return text
    if match is None or _PLAIN_OPTIONS.fullmatch(match["name"]):
        return text if match is not None or not text else HIDDEN
    return f"{match['name']}={HIDDEN}"
