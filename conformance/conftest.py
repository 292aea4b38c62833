"""Fixtures of the suite: a harness for every test and, for tests that need it, a mock provider on loopback."""

import os
from pathlib import Path

import pytest

from harness import Harness
from mock_provider import MockProvider
from installed_programs import Programs


@pytest.fixture(scope="session")
def engine():
    """Path of the built `whimbrel`."""
    return program_path("WHIMBREL")


@pytest.fixture(scope="session")
def store_program():
    """Path of the built program that serves our session stores."""
    return program_path("WHIMBREL_STORE")


def program_path(variable):
    path = Path(os.environ[variable]).resolve()
    assert path.is_file(), f"{path} does not exist: run `cargo xtask sdk`, which builds it"
    return path


@pytest.fixture(scope="session")
def sdk_dir():
    """Directory in which the SDKs are installed."""
    return Path(os.environ["WHIMBREL_CHECK"]).resolve()


@pytest.fixture
def harness(engine, tmp_path):
    """Directories, scripted models and the engine for one test. Fails the test if a process outlives it, or if another
    engine was started."""
    harness = Harness(engine, tmp_path)
    yield harness
    harness.ensure_no_processes()
    harness.ensure_no_other_engine()


@pytest.fixture
def programs(sdk_dir, harness):
    """Programs of others, for one test."""
    return Programs(sdk_dir, harness)


@pytest.fixture(autouse=True)
def isolated_environment(sdk_dir, harness, monkeypatch):
    """Replaces our environment, which the Python SDK passes on to the engine, by that of the harness."""
    env = harness.env()
    for name in set(os.environ) - set(env):
        monkeypatch.delenv(name)
    for name, value in env.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def provider(isolated_environment, monkeypatch):
    """A mock of the Messages API, for tests that check the requests to the model."""
    with MockProvider() as provider:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", provider.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-nothing")
        yield provider
        provider.ensure_only_our_engine_asked()
