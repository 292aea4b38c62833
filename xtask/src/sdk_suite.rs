//! Conformance suite: drives the built binary with the official SDKs for Python and TypeScript. Dependencies are
//! installed in `.check/` with pinned versions, on the first run and whenever the versions change.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::command::{self, run_args, workspace_root};

/// The Python SDK. Built from source, because its wheel contains another engine.
const PYTHON_SDK: &str = "claude-agent-sdk==0.2.182";

/// Pinned versions of the other Python packages.
const REQUIREMENTS: &str = "conformance/requirements.txt";

/// Versions of the TypeScript SDK, one per generation.
const TYPESCRIPT_SDK_VERSIONS: [&str; 2] = ["0.2.50", "0.3.325"];

/// Required dependency of the TypeScript SDKs.
const ZOD: &str = "zod@4.1.12";

/// MCP reference server; others are among the Python packages.
const MCP_SERVER: &str = "@modelcontextprotocol/server-everything@2026.8.31";

/// Installs missing dependencies and runs the suite; `pytest_args` are further arguments for pytest.
pub(crate) fn run(pytest_args: &[String]) -> Result<()> {
    command::run("cargo build --package whimbrel-cli --locked")?;
    command::run("cargo build --package whimbrel-store-sqlite --example serve_store --locked")?;
    install_python_sdk()?;
    for version in TYPESCRIPT_SDK_VERSIONS {
        install_typescript_sdk(version)?;
    }
    install_mcp_server()?;
    let python = workspace_path(".check/venv/bin/python");
    let mut args = vec![python.as_str(), "-m", "pytest", "-q", "-p", "no:cacheprovider", "conformance"];
    args.extend(pytest_args.iter().map(String::as_str));
    let (engine, check_dir) = (workspace_path("target/debug/whimbrel"), workspace_path(".check"));
    let store = workspace_path("target/debug/examples/serve_store");
    run_args(&args, &[("WHIMBREL", &engine), ("WHIMBREL_STORE", &store), ("WHIMBREL_CHECK", &check_dir)])
}

fn install_python_sdk() -> Result<()> {
    let requirements = workspace_path(REQUIREMENTS);
    let pinned = fs::read_to_string(&requirements).with_context(|| format!("cannot read {requirements}"))?;
    let dir = workspace_path(".check/venv");
    install_once(&dir, &format!("{PYTHON_SDK}\n{pinned}"), || {
        run_args(&["python3", "-m", "venv", &dir], &[])?;
        let python = format!("{dir}/bin/python");
        let install = [python.as_str(), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        run_args(&[&install[..], &["--requirement", &requirements]].concat(), &[])?;
        let from_source =
            ["--no-deps", "--no-build-isolation", "--no-binary", "claude-agent-sdk", PYTHON_SDK];
        run_args(&[&install[..], &from_source].concat(), &[])
    })
}

/// Installs the SDK and zod only: the optional packages are an engine of hundreds of megabytes, and the peer
/// dependencies are needed for their types only.
fn install_typescript_sdk(version: &str) -> Result<()> {
    let dir = workspace_path(&format!(".check/ts-{version}"));
    let sdk = format!("@anthropic-ai/claude-agent-sdk@{version}");
    install_once(&dir, &format!("{sdk} {ZOD}"), || {
        let install =
            ["npm", "install", "--prefix", &dir, "--omit=optional", "--omit=peer", "--ignore-scripts"];
        run_args(&[&install[..], &["--no-audit", "--no-fund", "--no-save", &sdk, ZOD]].concat(), &[])
    })
}

fn install_mcp_server() -> Result<()> {
    let dir = workspace_path(".check/servers");
    install_once(&dir, MCP_SERVER, || {
        let install = ["npm", "install", "--prefix", &dir, "--omit=optional", "--ignore-scripts"];
        run_args(&[&install[..], &["--no-audit", "--no-fund", "--no-save", MCP_SERVER]].concat(), &[])
    })
}

/// Installs into a directory unless it already has exactly these packages, as noted in `installed.txt`. Removes an
/// older or broken installation first.
fn install_once(dir: &str, packages: &str, install: impl FnOnce() -> Result<()>) -> Result<()> {
    let marker = Path::new(dir).join("installed.txt");
    if fs::read_to_string(&marker).is_ok_and(|installed| installed == packages) {
        return Ok(());
    }
    if Path::new(dir).exists() {
        fs::remove_dir_all(dir).with_context(|| format!("cannot remove {dir}"))?;
    }
    fs::create_dir_all(dir).with_context(|| format!("cannot create {dir}"))?;
    install()?;
    fs::write(&marker, packages).with_context(|| format!("cannot write {}", marker.display()))
}

fn workspace_path(path: &str) -> String {
    let target = std::env::var("CARGO_TARGET_DIR").ok();
    match (path.strip_prefix("target/"), target) {
        (Some(rest), Some(target)) => format!("{target}/{rest}"),
        _ => workspace_root().join(path).display().to_string(),
    }
}
