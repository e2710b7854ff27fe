"""`docs/deploy.md` tells the truth: its commands name files, services and objects that there are, and our options."""

import re
import shlex
from itertools import pairwise

import pytest
import yaml

from consumer.demo.shop_load import TOTAL
from tests.docker.manifests import KUBERNETES, found, kustomized
from tests.docker.stack import BASE, DOCKER, FILES, ROOT, SERVICES, VARIABLE, composed
from tests.docker.test_kubernetes import SECRET, config_map
from tests.docs.test_readme import README, check_command_line, words_of

TEXT = (ROOT / "docs" / "deploy.md").read_text()
BLOCKS = re.findall(r"^```bash\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
LINES = [line for block in BLOCKS for line in block.splitlines()]
INLINE = re.findall(r"`((?:docker|kubectl|systemctl|reconciler) [^`]+)`", TEXT.replace("\n", " "))
UNIT = (DOCKER / "systemd" / "ticdc-reconciler.service").read_text()
ENGINE = {"up": {"--build", "--detach"}, "stop": set(), "kill": set(), "down": {"--volumes"}}


def check_docker(words: list[str]) -> None:
    """Compose files, verbs, options and services; or a build of our image."""
    if words[0] == "build":
        assert words == ["build", "-f", "docker/Dockerfile", "-t", SERVICES["reconciler"]["image"], "."]
        return
    assert words.pop(0) == "compose"
    files: list[str] = []
    while words[0] == "-f":
        files.append(words[1].removeprefix("docker/"))
        del words[:2]
    assert files[0] == "compose.yml"
    services = {name for file in files for name in composed(file)["services"]}
    assert {word for word in words[1:] if word.startswith("-")} <= ENGINE[words[0]]
    assert {word for word in words[1:] if not word.startswith("-")} <= services


def check_kubectl(words: list[str]) -> None:
    """Files and objects that a line names."""
    manifests = kustomized(KUBERNETES / "spark")
    given = dict(pairwise(words))
    for option in ("-f", "-k"):
        if option in given:
            path = ROOT / given[option]
            assert path.is_file() if option == "-f" else (path / "kustomization.yaml").is_file()
    if "--namespace" in given:
        assert given["--namespace"] == SECRET["metadata"]["namespace"]
    for kind, name in re.findall(r"\b(deployment|service)/([\w-]+)", " ".join(words)):
        assert name in {one["metadata"]["name"] for one in found(manifests, kind.title())}
    if words[:3] == ["create", "secret", "generic"]:
        keys = {word.split("=")[1] for word in words if word.startswith("--from-file=")}
        assert (words[3], keys) == (SECRET["metadata"]["name"], set(SECRET["stringData"]))


def check_systemd(line: str, program: str) -> None:
    """What is made is what the unit reads, owned by the user that it runs as."""
    user = re.search(r"^User=(\w+)", UNIT, re.MULTILINE)
    assert user is not None
    if program == "useradd":
        assert line.endswith(f" {user[1]}")
    assert set(re.findall(r"-[og] (\w+)", line)) <= {user[1]}
    for path in re.findall(r"/etc/ticdc-reconciler/secrets/([\w-]+)", line):
        assert re.search(rf"^LoadCredential={path}:/etc/ticdc-reconciler/secrets/{path}$", UNIT, re.MULTILINE)
    for path in re.findall(r"/opt/ticdc-reconciler/venv", line):
        assert f"ExecStart={path}/bin/reconciler" in UNIT
    for path in re.findall(r"/var/lib/ticdc-reconciler/changefeeds\b", line):
        assert f" serve {path} " in UNIT
    for path in re.findall(r"(?<= )(docker/\S+|requirements\.lock)", line):
        assert (ROOT / path).is_file()
    for name in re.findall(r"(?:systemctl enable --now|systemctl restart|journalctl -u) (\S+)", line):
        assert (DOCKER / "systemd" / f"{name}.service").is_file()
    for module in re.findall(r"-m (consumer[.\w]+)", line):
        assert (ROOT / f"{module.replace('.', '/')}.py").is_file()


@pytest.mark.parametrize("line", [*LINES, *INLINE])
def test_its_commands_name_what_there_is(line: str) -> None:
    program, *words = shlex.split(line)
    match program.rpartition("/")[2]:
        case "docker":
            check_docker(words)
        case "kubectl":
            check_kubectl(words)
        case "reconciler":
            check_command_line(words_of(line.replace("DIRECTORY", "x")))
        case "useradd" | "python3" | "pip" | "python" | "install" | "openssl" | "systemctl" | "journalctl" as name:
            check_systemd(line, name)
        case _:
            pytest.fail(f"nothing checks {program}")


def test_its_block_for_systemd_makes_all_that_the_unit_reads() -> None:
    (block,) = (block for block in BLOCKS if "systemctl" in block)
    for path in re.findall(r"^LoadCredential=\w[\w-]*:(\S+)$", UNIT, re.MULTILINE):
        assert path in block
    assert "/etc/systemd/system/ticdc-reconciler.service" in block
    assert "file:/run/credentials/ticdc-reconciler.service/target-uri" in TEXT


def test_its_addresses_are_those_of_the_services() -> None:
    ports = {port.split(":")[1] for service in BASE["services"].values() for port in service.get("ports", [])}
    (rows,) = re.findall(r"^\| address \| what \|\n\|---\|---\|\n((?:\|.*\n)+)", TEXT, re.MULTILINE)
    told = {port for line in rows.splitlines() for port in re.findall(r"\b(\d{4})\b(?:/|`)", line.split("|")[1])}
    assert told | set(re.findall(r":(\d{4})/", rows)) == ports
    assert all((DOCKER / "secrets" / name).is_file() for name in re.findall(r"docker/secrets/([a-z-]+)`", TEXT))
    assert {f"shop-{name}" for name in ("mariadb", "postgres")} <= set(re.findall(r"`(shop-\w+)`", TEXT))
    assert str(TOTAL) in TEXT


def test_each_port_s_variable_is_named() -> None:
    variables = {name for file in FILES for name, _ in VARIABLE.findall((DOCKER / file).read_text())}
    assert variables == set(re.findall(r"`([A-Z]+_PORT)`", TEXT))


def test_the_files_that_it_names_exist() -> None:
    for path in set(re.findall(r"`((?:docker|docs)/[\w./-]+)`", TEXT)):
        assert (ROOT / path).exists(), path
    assert "docs/deploy.md" in README
    assert "deploy.md" in UNIT


def test_it_explains_each_setting_of_spark_there() -> None:
    section = TEXT.split("### Spark's tasks")[1].split("\n## ")[0]
    text = config_map(kustomized(KUBERNETES / "spark"), "ticdc-reconciler-changefeeds")["_serve.toml"]
    settings = set(re.findall(r'^"(spark\.[\w.]+)"', text, re.MULTILINE)) - {"spark.driver.memory"}
    assert set(re.findall(r"`(spark\.[\w.]+)`", section)) == settings
    command = yaml.safe_load(
        config_map(kustomized(KUBERNETES / "spark"), "ticdc-reconciler-executors")["executor.yaml"]
    )
    assert f"`{' '.join(command['spec']['containers'][0]['command'])}`" in section


def test_sizes_are_those_of_the_manifests() -> None:
    (deployment,) = found(kustomized(KUBERNETES / "base"), "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["requests"]["memory"] == "3Gi"
    assert container["resources"]["limits"] == {"memory": "6Gi", "ephemeral-storage": "20Gi"}
    assert "| memory | 3 GiB, at most 6 |" in TEXT
    assert "| disk for `/tmp` | 20 GiB |" in TEXT
    assert "512mb" in SERVICES["redis"]["command"]
