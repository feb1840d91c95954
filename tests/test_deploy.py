"""The files of deploy/ say what the server's real settings are. No engine runs them here."""

from __future__ import annotations

import json
import re
import secrets
import signal
import subprocess
import sys
import tomllib
import urllib.error
import urllib.request
from pathlib import Path

import click
import pytest
import yaml

import forked
from echoic.adapters.connections import HEALTH_PATHS
from echoic.cli import root
from echoic.stores import store_of

ROOT = Path(__file__).parent.parent
DEPLOY = ROOT / "deploy"
COMPOSE = sorted(DEPLOY.glob("compose*.yaml"))
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"].keys()
KNOWN = set(re.findall(r"^\| `(ECHOIC_\w+)`", (ROOT / "docs" / "settings.md").read_text(), re.MULTILINE))


def serving(words: list[str]) -> dict[str, object]:
    """The options of `echoic serve`, as its own parser reads `words`."""
    assert words[0] == "serve"
    command = root.get_command(click.Context(root), "serve")
    with command.make_context("serve", words[1:], parent=click.Context(root, info_name="echoic")) as ctx:
        return ctx.params


def stages() -> list[list[tuple[str, str]]]:
    """The instructions of the Containerfile by stage."""
    text = re.sub(r"(?m)^#.*\n", "", (DEPLOY / "Containerfile").read_text()).replace("\\\n", " ")
    found: list[list[tuple[str, str]]] = []
    for line in filter(None, map(str.strip, text.splitlines())):
        name, _, rest = line.partition(" ")
        if name == "FROM":
            found.append([])
        found[-1].append((name, rest.strip()))
    return found


def test_the_container_serves_what_the_server_serves_and_runs_as_nobody_special():
    build, last = stages()
    for _, rest in (each for each in build if each[0] == "COPY"):
        *sources, _ = rest.split()
        assert all((ROOT / source).exists() for source in sources), rest
    (chosen,) = [rest.partition("=")[2] for name, rest in build if name == "ARG"]
    assert set(chosen.split(",")) <= EXTRAS
    told = dict(last)
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", told["USER"])
    options = serving(json.loads(told["CMD"]))
    assert json.loads(told["ENTRYPOINT"]) == ["echoic"]
    assert int(told["EXPOSE"]) == options["port"] == serving(["serve"])["port"]
    checked = re.search(r"http://127\.0\.0\.1:(\d+)(/\w+)", told["HEALTHCHECK"])
    assert checked
    assert (int(checked[1]), checked[2]) == (options["port"], "/readyz")
    variables = set(re.findall(r"\b(ECHOIC_\w+)=", " ".join(rest for name, rest in last if name == "ENV")))
    assert variables <= KNOWN
    assert [name for name, _ in last].index("USER") < [name for name, _ in last].index("ENTRYPOINT")


@pytest.mark.parametrize("path", COMPOSE, ids=lambda path: path.name)
def test_a_compose_file_starts_the_server_with_settings_that_exist(path):
    said = yaml.safe_load(path.read_text())
    service = said["services"]["echoic"]
    assert (DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]).exists()
    assert set(service["environment"]) <= KNOWN
    assert "ECHOIC_SECRET" in service["environment"]  # else it does not listen for other machines
    filled = re.sub(r"\$\{(\w+)[^}]*\}", "s3cret", service["environment"]["ECHOIC_STORE"])
    store_of(filled.replace("////data/", "////tmp/"))
    options = serving([str(word) for word in service["command"]])
    ports = [*service.get("ports", []), *service.get("expose", [])]
    assert [int(str(port).rpartition(":")[2]) for port in ports] == [options["port"]]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    mounted = [each.partition(":")[0] for one in said["services"].values() for each in one.get("volumes", [])]
    assert set(mounted) == set(said["volumes"])
    assert set(service.get("depends_on", [])) <= said["services"].keys()


def test_the_deployment_probes_what_answers_under_a_name_the_server_has():
    kinds = {each["kind"]: each for each in yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text())}
    pod = kinds["Deployment"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    options = serving(container["args"])
    (port,) = container["ports"]
    assert port["containerPort"] == options["port"]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        get = container[probe]["httpGet"]
        assert get["path"] in HEALTH_PATHS
        assert get["port"] == port["name"]
        assert get["httpHeaders"] == [{"name": "Host", "value": "localhost"}]
    assert {each["name"] for each in container["env"]} <= KNOWN
    made = {"persistentVolumeClaim": kinds["PersistentVolumeClaim"]["metadata"]["name"]}
    claims = [
        each["persistentVolumeClaim"]["claimName"]
        for each in pod["volumes"]
        if "persistentVolumeClaim" in each
    ]
    assert claims == [made["persistentVolumeClaim"]]
    assert {each["name"] for each in container["volumeMounts"]} == {each["name"] for each in pod["volumes"]}
    labels = kinds["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert kinds["Service"]["spec"]["selector"] == labels
    assert kinds["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == labels
    assert kinds["Service"]["spec"]["ports"][0]["targetPort"] == port["name"]
    assert pod["securityContext"]["runAsUser"] == int(dict(stages()[-1])["USER"].partition(":")[0])
    assert container["securityContext"]["readOnlyRootFilesystem"] is True


def test_a_server_started_as_the_container_starts_it_is_ready_for_its_probe_and_ends_when_told(tmp_path):
    words = json.loads(dict(stages()[-1])["CMD"])
    words[words.index("--port") + 1] = "0"
    variables = {
        "ECHOIC_SECRET": secrets.token_urlsafe(32),
        "ECHOIC_STORE": f"sqlite:///{tmp_path}/echoic.db",
    }
    server = forked.Popen(
        [sys.executable, "-m", "echoic.cli", "--embedder", "lexical", *words],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        url = server.stdout.readline().decode().strip()
        for host, status in (("localhost", 200), ("10.1.2.3", 400)):
            request = urllib.request.Request(f"{url}readyz", headers={"Host": host})
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    assert answer.status == status
            except urllib.error.HTTPError as refused:
                assert refused.code == status
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0
    finally:
        if server.poll() is None:
            server.kill()
        server.communicate()
