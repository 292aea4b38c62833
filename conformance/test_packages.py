"""The packages of a release, each installed into a clean environment and used there, with the official SDK if it has one.

The packages are made from the debug build that the other tests use."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig

import pytest
from claude_agent_sdk import ClaudeAgentOptions

from python_sdk import only_result, run_query

# The packages are large, because the program is not optimized.
pytestmark = pytest.mark.timeout(300)

PACKAGE_TIMEOUT = 240

PYTHON_PROGRAM = """
import asyncio, sys, whimbrel
from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, query

async def main():
    options = ClaudeAgentOptions(cli_path=whimbrel.cli_path(), model=sys.argv[1])
    async for message in query(prompt="hi", options=options):
        if isinstance(message, ResultMessage):
            print(whimbrel.cli_path(), message.result)

asyncio.run(main())
"""

TYPESCRIPT_SDKS = ("0.2.50", "0.3.325")

TYPESCRIPT_PROGRAM = """
import { query } from '@anthropic-ai/claude-agent-sdk'
import { path } from 'whimbrel'

const options = { pathToClaudeCodeExecutable: path, model: process.argv[2] }
for await (const message of query({ prompt: 'hi', options }))
  if (message.type === 'result') console.log(path, message.result)
process.exit()
"""


def run(*command, **options):
    """Runs a command that must succeed; returns its output."""
    command = [str(word) for word in command]
    process = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PACKAGE_TIMEOUT, **options
    )
    assert process.returncode == 0, (command, process.stdout, process.stderr)
    return process.stdout


def require_debian():
    """Skips the test where the system has no Debian packages."""
    if not shutil.which("dpkg"):
        pytest.skip("this system has no dpkg")


def build_packages(engine, directory):
    run(os.environ["WHIMBREL_XTASK"], "package", "--binary", engine, "--out", directory, "--strip", "--fast")
    return directory


@pytest.fixture(scope="session")
def packages(engine, tmp_path_factory):
    """Directory with the packages."""
    return build_packages(engine, tmp_path_factory.mktemp("packages"))


@pytest.fixture(scope="session")
def same_packages(engine, tmp_path_factory):
    """Directory with packages that are built once more."""
    return build_packages(engine, tmp_path_factory.mktemp("same-packages"))


@pytest.fixture(scope="session")
def version_line(engine):
    return run(engine, "--version")


def find_package(packages, pattern):
    (package,) = packages.glob(pattern)
    return package


def ensure_it_works_with_the_sdks(program, harness, sdk_dir):
    """Fails unless both official SDKs get an answer from an installed program, given its path."""
    options = ClaudeAgentOptions(cli_path=program, cwd=harness.workspace, model=harness.write_script("Good morning."))
    assert only_result(run_query("hi", options)).result == "Good morning."
    script = TYPESCRIPT_PROGRAM.replace("import { path } from 'whimbrel'", f"const path = {json.dumps(str(program))}")
    for version in TYPESCRIPT_SDKS:
        project = harness.root / f"ts-{version}"
        project.mkdir()
        (project / "node_modules").symlink_to(sdk_dir / f"ts-{version}" / "node_modules")
        (project / "program.mjs").write_text(script)
        model = harness.write_script("Good morning.")
        assert run("node", "program.mjs", model, cwd=project) == f"{program} Good morning.\n", version


@pytest.fixture
def prefix(packages, harness):
    """Directory into which the tarball is unpacked."""
    prefix = harness.root / "prefix"
    prefix.mkdir()
    run("tar", "-xzf", find_package(packages, "*.tar.gz"), "-C", prefix, "--strip-components=1")
    return prefix


def test_same_program_gives_the_same_packages(packages, same_packages):
    sums = (packages / "SHA256SUMS").read_text()
    assert sums == (same_packages / "SHA256SUMS").read_text()
    listed = dict(reversed(line.split("  ")) for line in sums.splitlines())
    files = [path for path in packages.iterdir() if path.name != "SHA256SUMS"]
    assert listed == {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_wheel_works_with_the_python_sdk(packages, harness, version_line):
    venv = harness.root / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", venv)
    python = venv / "bin" / "python"
    wheel = find_package(packages, "*.whl")
    # The pip of the suite, so that the environment has nothing but the wheel.
    pip = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check"]
    run(*pip, "install", "--quiet", "--no-index", "--no-cache-dir", wheel)
    run(*pip, "check")
    assert run(venv / "bin" / "whimbrel", "--version") == version_line
    assert run(python, "-m", "whimbrel", "--version") == version_line
    check_record = (
        "import importlib.metadata as m, hashlib, base64\n"
        "for file in m.files('whimbrel'):\n"
        "    if file.hash:\n"
        "        digest = hashlib.new(file.hash.mode, file.read_binary()).digest()\n"
        "        assert base64.urlsafe_b64encode(digest).rstrip(b'=').decode() == file.hash.value, file\n"
    )
    run(python, "-c", check_record)
    # The SDK of the suite: only the engine comes from the environment.
    env = dict(os.environ, PYTHONPATH=sysconfig.get_path("purelib"))
    model = harness.write_script("Good morning.")
    printed = run(python, "-c", PYTHON_PROGRAM, model, env=env, cwd=harness.workspace)
    path, answer = printed.strip().split(" ", 1)
    assert path.startswith(str(venv)) and answer == "Good morning."


def test_npm_package_works_with_the_typescript_sdks(packages, harness, sdk_dir, version_line):
    project = harness.root / "project"
    project.mkdir()
    (project / "package.json").write_text("{}")
    tarball = find_package(packages, "*.tgz")
    run("npm", "install", "--offline", "--no-audit", "--no-fund", tarball, cwd=project)
    assert run("npx", "--offline", "--no", "whimbrel", "--", "--version", cwd=project) == version_line
    required = run("node", "-p", "require('whimbrel').path", cwd=project).strip()
    assert run(required, "--version") == version_line
    package = project / "node_modules" / "whimbrel"
    manifest = json.loads((package / "package.json").read_text())
    exported = [manifest["main"], manifest["types"], manifest["bin"]["whimbrel"]]
    exported += [path for condition in manifest["exports"]["."].values() for path in condition.values()]
    assert [path for path in exported if not (package / path).is_file()] == []
    program = project / "program.mjs"
    program.write_text(TYPESCRIPT_PROGRAM)
    for version in TYPESCRIPT_SDKS:
        # The SDK of the suite, which has its dependencies beside it.
        scope = project / "node_modules" / "@anthropic-ai"
        scope.unlink(missing_ok=True)
        scope.symlink_to(sdk_dir / f"ts-{version}" / "node_modules" / "@anthropic-ai")
        model = harness.write_script("Good morning.")
        printed = run("node", program, model, cwd=project)
        assert printed == f"{required} Good morning.\n", version


def test_debian_package_works_with_the_sdks(packages, harness, sdk_dir, version_line):
    require_debian()
    package, root = find_package(packages, "*.deb"), harness.root / "root"
    if os.geteuid() == 0:
        for directory in ("info", "updates"):
            (root / "var/lib/dpkg" / directory).mkdir(parents=True)
        for file in ("status", "available"):
            (root / "var/lib/dpkg" / file).touch()
        # The other packages are those of this system.
        run("dpkg", f"--root={root}", "--force-depends", "--install", package)
        assert run("dpkg", f"--root={root}", "--verify", "whimbrel") == ""
    else:
        run("dpkg-deb", "--extract", package, root)
    program = root / "usr/bin/whimbrel"
    assert run(program, "--version") == version_line
    model = harness.write_script("Good morning.")
    assert run(program, "-p", "--model", model, "hi", cwd=harness.workspace) == "Good morning.\n"
    ensure_it_works_with_the_sdks(program, harness, sdk_dir)
    assert run("dpkg-deb", "--field", package, "Depends").startswith("libc6 (>= 2.")
    for file in ("doc/whimbrel/copyright", "man/man1/whimbrel.1.gz", "bash-completion/completions/whimbrel"):
        assert (root / "usr/share" / file).is_file(), file


def test_tarball_works_with_the_sdks_from_any_prefix(prefix, harness, sdk_dir, version_line):
    program = prefix / "bin/whimbrel"
    assert run(program, "--version") == version_line
    ensure_it_works_with_the_sdks(program, harness, sdk_dir)
    assert run(program, "demo", cwd=harness.workspace) != ""
    documents = sorted(path.name for path in (prefix / "share/doc/whimbrel").iterdir())
    assert documents == ["CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT", "README.md", "THIRD-PARTY"]
    third_party = (prefix / "share/doc/whimbrel/THIRD-PARTY").read_text()
    assert "\ntokio 1." in third_party and "Permission is hereby granted" in third_party


@pytest.mark.parametrize(
    "shell, script",
    [
        ("bash", "bash-completion/completions/whimbrel"),
        ("zsh", "zsh/site-functions/_whimbrel"),
        ("fish", "fish/vendor_completions.d/whimbrel.fish"),
    ],
)
def test_completions_are_valid(prefix, shell, script):
    run(shell, "-n", prefix / "share" / script)


def test_bash_completes_flags(prefix):
    script = prefix / "share/bash-completion/completions/whimbrel"
    complete = 'source "$1"; COMP_WORDS=(whimbrel --per) COMP_CWORD=1; _whimbrel; printf "%s\\n" "${COMPREPLY[@]}"'
    suggested = run("bash", "-c", complete, "bash", script).split()
    assert "--permission-mode" in suggested and all(word.startswith("--per") for word in suggested)


def test_fish_completes_flags(prefix, harness):
    script = prefix / "share/fish/vendor_completions.d/whimbrel.fish"
    suggested = run("fish", "-c", f"source {script}; complete -C 'whimbrel --permission-mode '", cwd=harness.workspace)
    assert "plan" in suggested.split()


@pytest.mark.parametrize("command", [("groff", "-ww", "-man", "-Tutf8", "-z"), ("mandoc", "-Tlint", "-Werror")])
def test_man_page_is_valid(prefix, command):
    process = subprocess.run(
        [*command, prefix / "share/man/man1/whimbrel.1"], capture_output=True, text=True, timeout=PACKAGE_TIMEOUT
    )
    assert (process.returncode, process.stdout, process.stderr) == (0, "", "")
