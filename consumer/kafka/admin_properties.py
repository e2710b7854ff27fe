"""What our properties mean to kafka-python, which serves the control plane."""

from typing import Any

from consumer.kafka.oauth import TokenEndpoint
from consumer.kafka.properties import Settings, mechanism, protocol
from consumer.kafka.tls import tls_context

_FOR_CONTROL = {"client.id": "client_id", "request.timeout.ms": "request_timeout_ms"}
"""librdkafka's property -> kafka-python's argument, of what is passed on as it is."""


def control_arguments(bootstrap: str, settings: Settings) -> dict[str, Any]:
    """Arguments of kafka-python's clients; what only the data plane knows is left out. Raises ConfigError."""
    found: dict[str, Any] = {_FOR_CONTROL[k]: v for k, v in settings.items() if k in _FOR_CONTROL}
    named = protocol(settings)
    if "SSL" in named:
        found["ssl_context"] = tls_context(settings)
    if "SASL" in named:
        found |= _login(settings)
    servers = bootstrap.split(",")
    return {"bootstrap_servers": servers, "client_id": "ticdc-reconciler", "security_protocol": named, **found}


def _login(settings: Settings) -> dict[str, Any]:
    how = mechanism(settings)
    if how == "OAUTHBEARER":
        return {"sasl_mechanism": how, "sasl_oauth_token_provider": TokenEndpoint(settings)}
    user = str(settings["sasl.username"])
    if how.startswith("SCRAM"):  # RFC 5802, section 5.1; kafka-python leaves it to us
        user = user.replace("=", "=3D").replace(",", "=2C")
    return {
        "sasl_mechanism": how,
        "sasl_plain_username": user,
        "sasl_plain_password": str(settings["sasl.password"]),
    }
