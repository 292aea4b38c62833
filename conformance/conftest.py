"""What every test of this suite is given: a stage, and where need be a provider on loopback."""

import os
from pathlib import Path

import pytest

from provider import Provider
from stage import Stage


@pytest.fixture(scope="session")
def engine():
    """The built program."""
    path = Path(os.environ["WHIMBREL"]).resolve()
    assert path.is_file(), f"{path} is not there: run `cargo xtask sdk`, which builds it"
    return path


@pytest.fixture(scope="session")
def installed():
    """Where the SDKs are."""
    return Path(os.environ["WHIMBREL_CHECK"]).resolve()


@pytest.fixture(scope="session")
def store_path():
    """The program that serves our session stores."""
    path = Path(os.environ["WHIMBREL_STORE"]).resolve()
    assert path.is_file(), f"{path} is not there: run `cargo xtask sdk`, which builds it"
    return path


@pytest.fixture
def stage(engine, tmp_path):
    """Folders, scripts and the engine for one test. At its end nothing of it may still run."""
    stage = Stage(engine, tmp_path)
    yield stage
    stage.clear()


@pytest.fixture(autouse=True)
def no_foreign_environment(installed, stage, monkeypatch):
    """The Python SDK hands our own environment to the engine, so it is the stage's and nothing else."""
    wanted = stage.env()
    for name in set(os.environ) - set(wanted):
        monkeypatch.delenv(name)
    for name, value in wanted.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def provider(no_foreign_environment, monkeypatch):
    """A server of the Messages API on loopback, for tests that must see what reaches the model."""
    with Provider() as provider:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", provider.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-nothing")
        yield provider
