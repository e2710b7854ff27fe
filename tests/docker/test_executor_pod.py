"""An executor's pod: Spark builds it from our template, and its command is understood by Spark's executor."""

import os
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark import SparkContext

from consumer.embedded.java import java_runtime
from consumer.spark.executor_pod import command
from tests.docker.manifests import KUBERNETES, Object, kustomized
from tests.docker.stack import IMAGE
from tests.docker.test_kubernetes import config_map, validate

MANIFESTS = kustomized(KUBERNETES / "spark")
GIVEN = {
    "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@127.0.0.1:1",
    "SPARK_EXECUTOR_ID": "7",
    "SPARK_EXECUTOR_CORES": "2",
    "SPARK_EXECUTOR_MEMORY": "64m",
    "SPARK_APPLICATION_ID": "spark-application-1",
    "SPARK_EXECUTOR_POD_IP": "127.0.0.1",
    "SPARK_EXECUTOR_POD_NAME": "exec-7",
    "SPARK_RESOURCE_PROFILE_ID": "0",
    "SPARK_JAVA_OPT_10": "-Dlast=1",
    "SPARK_JAVA_OPT_2": "-Dfirst=1",
}


def jars() -> Path:
    spec = find_spec("pyspark")
    assert spec is not None
    return Path(str(spec.origin)).parent / "jars"


def test_its_command_is_spark_s() -> None:
    line = command(GIVEN, "/usr/bin/java", jars())
    assert line[:5] == ["/usr/bin/java", "-Dfirst=1", "-Dlast=1", "-Xms64m", "-Xmx64m"]
    assert line[line.index("-cp") + 1] == f"{jars()}/*"
    assert command({**GIVEN, "SPARK_CLASSPATH": "/more.jar"}, "java", jars())[6].startswith("/more.jar:")


@pytest.mark.by_turns(9)
@pytest.mark.spark
def test_spark_s_executor_understands_it() -> None:
    """There is no driver where it looks for one: it gets as far as asking."""
    line = command(GIVEN, str(java_runtime().java), jars())
    opens = [
        f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in ("java.nio", "sun.nio.ch", "java.lang", "java.util")
    ]
    line[1:1] = opens
    env = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env)
    said: list[str] = []
    for told in process.stdout or ():
        said.append(told)
        if "127.0.0.1:1" in told:
            break  # it would ask again for ten seconds
    process.kill()
    process.wait()
    assert "127.0.0.1:1" in said[-1], "".join(said)
    assert "Unrecognized options" not in "".join(said)


def test_nobody_else_starts_it() -> None:
    program = [sys.executable, "-m", "consumer.spark.executor_pod"]
    done = subprocess.run(
        [*program, "executor"], capture_output=True, text=True, check=False, env={"PATH": path_of_java()}
    )
    assert (done.returncode, "SPARK_" in done.stderr) == (2, True)
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert (done.returncode, "reconciler help deploy" in done.stderr) == (1, True)


def path_of_java() -> str:
    return str(Path(java_runtime().java).parent)


def module(jvm: Any, name: str) -> Any:
    """A Scala object by its class's name."""
    package, _, simple = name.rpartition(".")
    place = jvm
    for part in package.split("."):
        place = getattr(place, part)
    return getattr(getattr(place, f"{simple}$"), "MODULE$")


def settings_of(template: Path) -> dict[str, str]:
    """What the driver is told, in a pod with this address and name."""
    values = tomllib.loads(config_map(MANIFESTS, "ticdc-reconciler-changefeeds")["_serve.toml"])["spark"]
    texts = {name: str(value).lower() if isinstance(value, bool) else value for name, value in values.items()}
    told = {
        name: value.replace("${POD_IP}", "10.0.0.7").replace("${POD_NAME}", "driver-1") for name, value in texts.items()
    }
    told["spark.master"] = told.pop("master")
    told["spark.kubernetes.executor.podTemplateFile"] = str(template)
    return {**told, "spark.driver.port": "7078", "spark.app.id": "x", "spark.app.name": "x", "spark.local.dir": "/tmp"}


def built(spark: SparkContext, template: Path) -> Object:
    """The executor's pod as Spark's driver would send it to Kubernetes."""
    jvm: Any = spark._jvm
    conf, none = jvm.org.apache.spark.SparkConf(False), jvm.scala.Option.empty()
    for name, value in settings_of(template).items():
        conf.set(name, value)
    profile = module(jvm, "org.apache.spark.resource.ResourceProfile").getOrCreateDefaultProfile(conf)
    secret_file = getattr(module(jvm, "org.apache.spark.SecurityManager"), "$lessinit$greater$default$3")()
    security = jvm.org.apache.spark.SecurityManager(conf, none, secret_file)
    security.initializeAuth()
    executor = jvm.org.apache.spark.deploy.k8s.KubernetesExecutorConf(conf, "x", "1", none, 0)
    client = jvm.io.fabric8.kubernetes.client.KubernetesClientBuilder().build()
    builder = jvm.org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBuilder()
    pod = builder.buildFromFeatures(executor, security, client, profile).pod()
    as_yaml = jvm.io.fabric8.kubernetes.client.utils.Serialization.asYaml
    whole: Object = yaml.safe_load(as_yaml(pod.pod()))
    whole["spec"]["containers"] = [yaml.safe_load(as_yaml(pod.container()))]
    client.close()
    return whole


@pytest.mark.by_turns(9)
@pytest.mark.spark
def test_spark_builds_the_pod_that_is_meant(spark: SparkContext, tmp_path: Path) -> None:
    template = tmp_path / "executor.yaml"
    template.write_text(config_map(MANIFESTS, "ticdc-reconciler-executors")["executor.yaml"])
    pod = built(spark, template)
    validate(pod)
    (container,) = pod["spec"]["containers"]
    assert (container["image"], container["args"]) == (IMAGE, ["executor"])
    assert container["command"] == ["python", "-m", "consumer.spark.executor_pod"]
    places = [mount["mountPath"] for mount in container["volumeMounts"]]
    assert len(set(places)) == len(places)
    assert "/tmp" in places, "all else is read-only"
    variables = {one["name"]: one.get("value", "there") for one in container["env"]}
    assert variables["SPARK_DRIVER_URL"] == "spark://CoarseGrainedScheduler@10.0.0.7:7078"
    assert command(variables, "java", jars())
    asked = yaml.safe_load(template.read_text())["spec"]
    assert pod["spec"]["securityContext"] == asked["securityContext"]
    assert container["securityContext"] == asked["containers"][0]["securityContext"]
