"""TLS of Kafka's control plane, from the properties that librdkafka follows by itself.

kafka-python would build a context from fewer of them; this one checks the same certificates against the same
authorities as the data plane does.
"""

import ssl
from collections.abc import Mapping
from pathlib import Path
from tempfile import NamedTemporaryFile

from ordering.errors import ConfigError

_FILES = ("ssl.ca.location", "ssl.crl.location", "ssl.certificate.location", "ssl.key.location", "https.ca.location")
_PROBE = "probe"
"""librdkafka's word for the system's own authorities."""


def tls_context(settings: Mapping[str, object]) -> ssl.SSLContext:
    """The context that these properties mean. Raises ConfigError for files that can't be used."""
    context = authorities(settings, "ssl")
    try:
        if "ssl.crl.location" in settings:
            context.load_verify_locations(str(settings["ssl.crl.location"]))
            context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
        _show_certificate(context, settings)
    except (OSError, ValueError) as error:
        raise _unusable(error, settings) from error
    context.check_hostname = settings.get("ssl.endpoint.identification.algorithm", "https") == "https"
    if str(settings.get("enable.ssl.certificate.verification", True)).lower() == "false":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def authorities(settings: Mapping[str, object], prefix: str) -> ssl.SSLContext:
    """A context that trusts PREFIX.ca.location (file or directory) or PREFIX.ca.pem, else the system's authorities.

    Raises ConfigError.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    place, text = settings.get(f"{prefix}.ca.location"), settings.get(f"{prefix}.ca.pem")
    try:
        if text is not None:
            context.load_verify_locations(cadata=str(text))
        elif place is None or place == _PROBE:
            context.load_default_certs()
        elif Path(str(place)).is_dir():
            context.load_verify_locations(capath=str(place))
        else:
            context.load_verify_locations(str(place))
    except (OSError, ValueError) as error:
        raise _unusable(error, settings) from error
    return context


def _show_certificate(context: ssl.SSLContext, settings: Mapping[str, object]) -> None:
    # an empty password where a key asks for one: OpenSSL would ask on the terminal
    password = str(settings.get("ssl.key.password", ""))
    if "ssl.certificate.location" in settings:
        files = str(settings["ssl.certificate.location"]), str(settings["ssl.key.location"])
        context.load_cert_chain(*files, password=lambda: password)
    elif "ssl.certificate.pem" in settings:
        with NamedTemporaryFile("w", suffix=".pem") as file:  # ours alone; Python takes no key out of memory
            file.write(f"{settings['ssl.key.pem']}\n{settings['ssl.certificate.pem']}\n")
            file.flush()
            context.load_cert_chain(file.name, password=lambda: password)


def _unusable(error: Exception, settings: Mapping[str, object]) -> ConfigError:
    named = ", ".join(f"{name} = {settings[name]}" for name in _FILES if name in settings)
    told = getattr(error, "strerror", None) or str(error)
    hint = "PEM files are wanted, readable for us; ssl.key.password opens a key"
    return ConfigError(f"[source.kafka]: a file for TLS can't be used: {told}", where=named, hint=hint)
