"""What can be told of image and Compose files without an engine: nothing they name is missing, nothing is unpinned."""

import json
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from consumer.config.model import load_config
from consumer.serve.settings import load_settings
from sinks.uri import parse_target_uri
from tests.docker.stack import (
    BASE,
    CHANGEFEEDS,
    DOCKER,
    FILES,
    IMAGE,
    PINNED,
    ROOT,
    SCHEMAS,
    SERVICES,
    VARIABLE,
    VOLUMES,
    composed,
    mounts,
    ours,
    secret,
)
from tests.docs.test_readme import check_command_line

DOCKERFILE = re.sub(r"\\\n", " ", (DOCKER / "Dockerfile").read_text())
INSTRUCTIONS = [line.split(maxsplit=1) for line in DOCKERFILE.splitlines() if line and not line.startswith("#")]

GRAFANA_TALKS_TO_NOBODY = {
    "GF_ANALYTICS_REPORTING_ENABLED",
    "GF_ANALYTICS_CHECK_FOR_UPDATES",
    "GF_ANALYTICS_CHECK_FOR_PLUGIN_UPDATES",
}


def arguments(instruction: str) -> list[str]:
    return [words for name, words in INSTRUCTIONS if name == instruction]


@pytest.mark.parametrize("name", FILES)
def test_it_is_as_the_specification_says(name: str) -> None:
    validator = jsonschema_rs.validator_for(json.loads((SCHEMAS / "compose-spec.json").read_text()))
    validator.validate(json.loads(json.dumps(composed(name))))
    with pytest.raises(jsonschema_rs.ValidationError):
        validator.validate({"services": {"x": {"no-such-key": 1}}})


def test_all_are_there() -> None:
    servers = {"kafka", "redis", "mariadb", "postgres", "prometheus", "grafana"}
    assert set(BASE["services"]) == {*servers, "changefeeds", "reconciler"}
    assert set(composed("compose.tidb.yml")["services"]) == {"pd", "tikv", "tidb", "ticdc", "changefeed", "load"}


@pytest.mark.parametrize("name", SERVICES)
def test_images_are_pinned(name: str) -> None:
    assert PINNED.fullmatch(SERVICES[name]["image"])


def test_base_images_are_pinned_and_the_same() -> None:
    images = {words.split()[0] for words in arguments("FROM")}
    assert len(images) == 1
    assert all(PINNED.fullmatch(image) for image in images)


def test_servers_are_of_the_versions_that_are_tested_here() -> None:
    embedded = ROOT / "tests" / "embedded"

    def version(name: str, pattern: str) -> str:
        found = re.search(pattern, (ROOT / "consumer" / "embedded" / f"{name}-jars.properties").read_text())
        assert found is not None
        return found[1]

    kafka = version("kafka", r"org\.apache\.kafka/kafka_[\d.]+/([\d.]+)=")
    assert SERVICES["kafka"]["image"] == f"docker.io/apache/kafka:{kafka}"
    packed = re.search(r'"mariadb-([\d.]+)"', (embedded / "mariadb.py").read_text())
    assert packed is not None
    assert SERVICES["mariadb"]["image"] == f"docker.io/library/mariadb:{packed[1]}"
    packed = re.search(r'"postgres-(\d+\.\d+)', (embedded / "postgres.py").read_text())
    assert packed is not None
    assert SERVICES["postgres"]["image"].startswith(f"docker.io/library/postgres:{packed[1]}-")


def test_our_image_has_our_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f"ticdc-reconciler:{version}" == IMAGE
    assert set(ours()) == {"changefeeds", "reconciler", "load"}
    assert ours()["reconciler"]["build"] == {"context": "..", "dockerfile": "docker/Dockerfile"}


@pytest.mark.parametrize("name", SERVICES)
def test_who_waits_for_whom(name: str) -> None:
    """What is waited for exists, and tells its health or ends; what ends is not started again."""
    for other, how in SERVICES[name].get("depends_on", {}).items():
        once = SERVICES[other]["restart"] == "no"
        assert how == {"condition": "service_completed_successfully" if once else "service_healthy"}
        told = SERVICES[other].get("healthcheck", {})
        assert once or "test" in told or (SERVICES[other]["image"] == IMAGE and arguments("HEALTHCHECK"))


def test_the_reconciler_waits_for_all_servers() -> None:
    named = set(SERVICES["reconciler"]["depends_on"])
    assert named == {"kafka", "redis", "mariadb", "postgres", "changefeeds"}


@pytest.mark.parametrize("name", SERVICES)
def test_mounts_and_secrets_exist(name: str) -> None:
    for source, place in mounts(SERVICES[name]):
        assert place.startswith("/")
        assert (DOCKER / source).exists() if source.startswith(".") else source in VOLUMES
    assert set(SERVICES[name].get("secrets", [])) <= set(BASE["secrets"])


def test_every_secret_is_a_file_and_used() -> None:
    used = {name for service in SERVICES.values() for name in service.get("secrets", [])}
    assert used == set(BASE["secrets"])
    assert {path.name for path in (DOCKER / "secrets").iterdir()} == used
    assert all(BASE["secrets"][name] == {"file": f"./secrets/{name}"} and secret(name) for name in used)
    assert {source for service in SERVICES.values() for source, _ in mounts(service) if source[0] != "."} == set(
        VOLUMES
    )


def test_no_secret_is_in_an_environment_or_a_command_line() -> None:
    words = {word for name in BASE["secrets"] for word in (secret(name), re.sub(r".*:(.+)@.*", r"\1", secret(name)))}
    text = json.dumps(SERVICES)
    assert [word for word in words if word in text] == []


@pytest.mark.parametrize("name", SERVICES)
def test_secrets_that_an_environment_names_are_given(name: str) -> None:
    named = re.findall(r"/run/secrets/([\w-]+)", json.dumps(SERVICES[name].get("environment", {})))
    assert set(named) <= set(SERVICES[name].get("secrets", []))


def test_our_variables_are_read_by_our_code() -> None:
    code = "".join(path.read_text() for path in (ROOT / "consumer").rglob("*.py"))
    for service in ours().values():
        assert all(f'"{variable}"' in code for variable in service.get("environment", {}))
    (image,) = arguments("ENV")
    of_python = {"PATH", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"}
    assert {word.split("=")[0] for word in image.split()} - of_python == {"SPARK_LOCAL_DIRS", "JAVA_HOME"}


def test_variables_of_other_images_are_those_that_they_document() -> None:
    """Kafka's become broker settings, with which a broker is started in `test_stack.py`."""
    documented = {
        "mariadb": {"MARIADB_ROOT_PASSWORD_FILE", "MARIADB_USER", "MARIADB_PASSWORD_FILE"},
        "postgres": {"POSTGRES_DB", "POSTGRES_PASSWORD_FILE"},
        "grafana": {"GF_SECURITY_ADMIN_PASSWORD__FILE", "GF_USERS_ALLOW_SIGN_UP", *GRAFANA_TALKS_TO_NOBODY},
    }
    for name in set(SERVICES) - set(ours()) - {"kafka"}:
        assert set(SERVICES[name].get("environment", {})) == documented.get(name, set()), name


def test_ports_are_open_to_this_machine_only() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert all(port.startswith("127.0.0.1:") for port in ports)
    assert len({port.split(":")[1] for port in ports}) == len(ports) == 7


def test_each_port_can_be_another_one() -> None:
    """By the variable of its service; where a port is told to clients too, by the same one."""
    for file in FILES:
        text = (DOCKER / file).read_text()
        ports = re.findall(r"ports: \[(.+)\]", text)
        assert len(ports) == sum("ports" in service for service in composed(file)["services"].values())
        assert all(re.fullmatch(r'"127\.0\.0\.1:\$\{[A-Z]+_PORT:-(\d+)\}:\1"', port) for port in ports), ports
        given: dict[str, set[str]] = {}
        for variable, default in VARIABLE.findall(text):
            given.setdefault(variable, set()).add(default)
        assert all(len(defaults) == 1 for defaults in given.values()), given
        assert {name.upper() for name, service in composed(file)["services"].items() if "ports" in service} == {
            variable.removesuffix("_PORT") for variable in given
        }
    assert "OUTSIDE://127.0.0.1:${KAFKA_PORT:-9092}" in (DOCKER / "compose.yml").read_text()


def test_health_is_asked_without_starting_java() -> None:
    """Every five seconds, beside whatever the machine has to do."""
    for name, service in SERVICES.items():
        assert not re.search(r"/kafka-|java", str(service.get("healthcheck", {}).get("test"))), name


@pytest.mark.parametrize("name", SERVICES)
def test_images_are_named_in_full(name: str) -> None:
    """Engines other than Docker's look for a name without a registry in several, or in none."""
    image = SERVICES[name]["image"]
    assert image == IMAGE or image.startswith("docker.io/")


@pytest.mark.parametrize("name", SERVICES)
def test_nobody_gets_new_privileges(name: str) -> None:
    service = SERVICES[name]
    assert service["security_opt"] == ["no-new-privileges:true"]
    if service["image"] == IMAGE:
        assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])


@pytest.mark.parametrize("name", ["mariadb", "postgres"])
def test_the_changefeeds_are_valid_and_name_the_services(name: str, tmp_path: Any) -> None:
    text = (CHANGEFEEDS / f"shop-{name}.toml").read_text()
    (tmp_path / "x.toml").write_text(text.replace("/run/secrets/", f"{DOCKER}/secrets/"))
    config = load_config(tmp_path / "x.toml")
    assert config.changefeed == f"shop-{name}"
    target = parse_target_uri(config.target.uri)
    assert (target.kind, target.host, target.user) == (name.replace("postgres", "postgresql"), name, "reconciler")
    assert target.password == secret(f"{name}-reconciler")
    assert set(re.findall(r"/run/secrets/([\w-]+)", text)) <= set(SERVICES["reconciler"]["secrets"])
    assert config.redis.uri == "redis://redis:6379/0"
    host, port = config.source.bootstrap_servers.split(":")
    assert f"INSIDE://{host}:{port}" in SERVICES[host]["environment"]["KAFKA_ADVERTISED_LISTENERS"]


def test_the_changefeeds_are_two_and_share_one_spark() -> None:
    assert {path.name for path in CHANGEFEEDS.iterdir()} == {"_serve.toml", "shop-mariadb.toml", "shop-postgres.toml"}
    assert load_settings(CHANGEFEEDS).spark.master == "local[2]"


def test_the_reconciler_serves_the_directory_that_is_filled() -> None:
    seed, service = SERVICES["changefeeds"], SERVICES["reconciler"]
    words = service["command"]
    check_command_line(words[2:])
    place = words[words.index("serve") + 1]
    assert seed["working_dir"] == place
    assert set(mounts(seed)) & set(mounts(service)) == {("reconciler-data", place)}
    assert place in arguments("VOLUME"), "the volume begins with the image's owner"
    assert ("./changefeeds", re.search(r"cp (\S+)/\*\.toml", seed["entrypoint"][-1])[1]) in mounts(seed)  # type: ignore[index]


def test_filling_is_done_once(tmp_path: Any) -> None:
    """The command itself, in another place."""
    shell, option, script = SERVICES["changefeeds"]["entrypoint"]
    here = script.replace("/etc/reconciler/changefeeds", str(CHANGEFEEDS))
    for _ in range(2):
        subprocess.run([shell, option, here], cwd=tmp_path, check=True)
        assert {path.name for path in tmp_path.iterdir()} >= {"_serve.toml", "shop-postgres.toml"}
        (tmp_path / "shop-mariadb.toml").unlink(missing_ok=True)
    assert not (tmp_path / "shop-mariadb.toml").exists(), "what the API deleted stays deleted"


def test_prometheus_and_grafana_find_what_they_read() -> None:
    scrape = composed("prometheus/prometheus.yml")["scrape_configs"][0]
    (target,) = scrape["static_configs"][0]["targets"]
    host, port = target.split(":")
    command = SERVICES[host]["command"]
    assert (command[command.index("--port") + 1], command[command.index("--allow-host") + 1]) == (port, host)
    token = scrape["authorization"]["credentials_file"]
    assert SERVICES[host]["environment"]["RECONCILER_TOKEN"] == f"file:{token}"
    assert token.rpartition("/")[2] in SERVICES["prometheus"]["secrets"]
    assert len(secret("reconciler-token")) >= 16
    assert ("./prometheus", "/etc/prometheus") in mounts(SERVICES["prometheus"])
    (source,) = composed("grafana/provisioning/datasources/prometheus.yml")["datasources"]
    assert source["url"] == "http://prometheus:9090"
    (provider,) = composed("grafana/provisioning/dashboards/reconciler.yml")["providers"]
    boards = provider["options"]["path"]
    assert any(place.startswith(f"{boards}/") for _, place in mounts(SERVICES["grafana"]))


def test_everything_copied_exists_and_is_sent_to_the_engine() -> None:
    sources = [word for words in arguments("COPY") if "--from" not in words for word in words.split()[:-1]]
    assert {"docker/requirements.lock", "consumer", "ordering", "sinks"} <= set(sources)
    sent = {line.removeprefix("!") for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] == "!"}
    assert set(sources) == sent
    assert all(list(ROOT.glob(source)) for source in sources)


def pins(lock: Path) -> dict[str, str]:
    """Package -> its pin, with its marker."""
    return dict(re.findall(r"^([\w.-]+)==(.*?)(?: \\)?$", lock.read_text(), re.MULTILINE))


def test_the_image_is_locked_lean_and_without_root() -> None:
    assert any("--require-hashes -r requirements.lock" in words for words in arguments("RUN"))
    ours, every = pins(DOCKER / "requirements.lock"), pins(ROOT / "requirements.lock")
    assert ours.items() <= every.items()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = {re.split(r"[<>=\[]", each)[0].lower() for each in project["dependencies"]}
    assert needed <= ours.keys()
    extras = project["optional-dependencies"]
    unwanted = {re.split(r"[<>=\[]", each)[0].lower() for each in (*extras["embedded"], *extras["dev"])}
    assert not unwanted & ours.keys()
    (user,) = arguments("USER")
    assert f"--uid {user.split(':')[0]} " in DOCKERFILE


def test_the_image_serves_and_asks_itself_for_its_health() -> None:
    words = json.loads(arguments("CMD")[0])
    check_command_line(words[2:])
    port = words[words.index("--port") + 1]
    assert arguments("EXPOSE") == [port]
    assert f'"127.0.0.1:{port}"]' in arguments("HEALTHCHECK")[0]


def test_the_users_have_the_least_rights() -> None:
    """Those that the documentation lists, and no more."""
    security = (ROOT / "docs" / "security.md").read_text()
    listed = re.findall(r"^GRANT (.+) ON `", security, re.MULTILINE)
    given = re.search(r"^GRANT (.+?) ON \*\.\*", (DOCKER / "mariadb/rights.sql").read_text(), re.MULTILINE | re.DOTALL)
    assert given
    assert set(re.split(r",\s+", given[1])) == {right for rights in listed for right in rights.split(", ")}
    listed = re.findall(r"^GRANT (.+) ON DATABASE", security, re.MULTILINE)
    given_there = (DOCKER / "postgres" / "rights.sql").read_text()
    assert re.findall(r"^GRANT (.+) ON DATABASE shop", given_there, re.MULTILINE) == listed
