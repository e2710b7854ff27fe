"""Flink SQL: `canal-json` from Kafka into a table through the JDBC sink, the whole of it in one JVM.

`python -m tests.bench.peers.flink KAFKA TOPIC DATABASE URI`: the topic from its first offset to its last into the
table `sbtest1` of a database, which is there; then it ends. Flink's own libraries come from PyPI, its connectors from
Maven. The settings are those with which it was fastest here: two slots, objects reused, checkpoints every 10 s, 5,000
rows a flush; its JDBC sink writes at least once, by keys.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyspark
from py4j.java_gateway import JavaGateway

from consumer.embedded.jars import jar_directory
from consumer.embedded.java import java_runtime
from consumer.runtime.cache_dir import cache_directory
from consumer.runtime.file_locks import file_lock

LIBRARIES = "apache-flink-libraries==1.20.5"
_LOG = Path(__file__).with_name("flink-log.properties")
_OPENED = (
    "java.lang", "java.lang.reflect", "java.net", "java.io", "java.nio", "sun.nio.ch", "java.text", "java.time",
    "java.util", "java.util.concurrent", "java.util.concurrent.atomic", "java.util.concurrent.locks",
)  # fmt: skip
"""Packages that Flink reflects upon."""
HEAP = "2g"
OPTIONS = {
    "execution.target": "local",
    "parallelism.default": "2",
    "taskmanager.numberOfTaskSlots": "2",
    "pipeline.object-reuse": "true",
    "execution.checkpointing.interval": "10s",
    "execution.checkpointing.mode": "AT_LEAST_ONCE",
    "taskmanager.memory.managed.size": "64m",
    "taskmanager.memory.network.min": "64m",
    "taskmanager.memory.network.max": "64m",
}
_COLUMNS = "id INT NOT NULL, k INT NOT NULL, c STRING NOT NULL, pad STRING NOT NULL, PRIMARY KEY (id) NOT ENFORCED"
_OF_MYSQL = "rewriteBatchedStatements=true&useServerPrepStmts=false&cachePrepStmts=true&sslMode=DISABLED"
_OF_POSTGRES = "reWriteBatchedInserts=true"


def libraries() -> list[Path]:
    """Every jar; fetched on first use, some 230 MB."""
    place = cache_directory() / LIBRARIES.replace("==", "-")
    with file_lock(place.with_suffix(".lock")):
        if not place.is_dir():
            work = place.with_suffix(".unfinished")
            pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(work), LIBRARIES]
            subprocess.run(pip, check=True)
            work.rename(place)
    own = place.glob("pyflink/lib/*.jar")
    return sorted([*own, *jar_directory("flink", package=__package__).glob("*.jar")])


def statements(kafka: str, topic: str, database: str, uri: str) -> list[str]:
    """The job: two tables, and an INSERT from one into the other."""
    source = {
        "connector": "kafka",
        "topic": topic,
        "properties.bootstrap.servers": kafka,
        "properties.group.id": "flink",
        "properties.max.partition.fetch.bytes": "8388608",
        "properties.max.poll.records": "5000",
        "scan.startup.mode": "earliest-offset",
        "scan.bounded.mode": "latest-offset",
        "format": "canal-json",
        "canal-json.database.include": f"^{database}$",  # else it ends at the first watermark
        "canal-json.table.include": "^sbtest1$",
    }
    sink = {**_jdbc(uri, database), "connector": "jdbc", "table-name": "sbtest1", "sink.buffer-flush.max-rows": "5000"}
    return [
        f"CREATE TABLE source ({_COLUMNS}) WITH ({_options(source)})",
        f"CREATE TABLE sink ({_COLUMNS}) WITH ({_options(sink)})",
        "INSERT INTO sink SELECT id, k, c, pad FROM source",
    ]


def _options(options: dict[str, str]) -> str:
    return ", ".join(f"'{name}' = '{value}'" for name, value in options.items())


def _jdbc(uri: str, database: str) -> dict[str, str]:
    parts = urlsplit(uri)
    login = {"username": parts.username or "", "password": parts.password or ""}
    if parts.scheme == "postgresql":
        place = f"{parts.hostname}:{parts.port}{parts.path}?currentSchema={database}&{_OF_POSTGRES}"
    else:
        place = f"{parts.hostname}:{parts.port}/{database}?{_OF_MYSQL}"
    return {"url": f"jdbc:{parts.scheme}://{place}", **login}


def _gateway() -> JavaGateway:
    """A JVM with Flink in it, which writes its log to our standard error."""
    opened = [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in _OPENED]
    java = ["-Xms512m", f"-Xmx{HEAP}", "-XX:+UseG1GC", *opened, f"-Dlog4j2.configurationFile={_LOG.as_uri()}"]
    (py4j,) = Path(pyspark.__file__).parent.glob("jars/py4j-*.jar")
    return JavaGateway.launch_gateway(
        jarpath=str(py4j), classpath=":".join(map(str, libraries())), javaopts=java, java_path=str(java_runtime().java),
        redirect_stdout=sys.stderr, redirect_stderr=sys.stderr, die_on_exit=True, enable_auth=True,
    )  # fmt: skip


def run(kafka: str, topic: str, database: str, uri: str) -> None:
    """Run the job to its end."""
    gateway = _gateway()
    flink: Any = gateway.jvm.org.apache.flink
    settings = flink.configuration.Configuration()
    for name, value in OPTIONS.items():
        settings.setString(name, value)
    made = flink.table.api.EnvironmentSettings.newInstance().inStreamingMode().withConfiguration(settings).build()
    tables = flink.table.api.TableEnvironment.create(made)
    *_, result = [tables.executeSql(statement) for statement in statements(kafka, topic, database, uri)]
    getattr(result, "await")()
    gateway.shutdown()


if __name__ == "__main__":
    run(*sys.argv[1:])
