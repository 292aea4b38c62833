//! Conformance suite: drives the built binary with the official SDKs for Python and TypeScript and with programs of
//! others, and installs its packages. Dependencies are installed in `.check/` with pinned versions, on the first run and
//! whenever the versions change. No other engine is installed.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, Result};

use crate::command::{self, run_args};
use crate::installation::{copy_package_files, install_once, workspace_path};

/// The Python SDK. Built from source, because its wheel contains another engine.
const PYTHON_SDK: &str = "claude-agent-sdk==0.2.182";

/// Pinned versions of the other Python packages.
const REQUIREMENTS: &str = "conformance/requirements.txt";

/// Versions of the TypeScript SDK, one per generation.
const TYPESCRIPT_SDK_VERSIONS: [&str; 2] = ["0.2.50", "0.3.325"];

/// Required dependency of the TypeScript SDKs.
const ZOD: &str = "zod@4.1.12";

/// The engine in the older TypeScript SDK; it is removed, so that no test can start it.
const ENGINE_OF_OLD_SDK: &str = "node_modules/@anthropic-ai/claude-agent-sdk/cli.js";

/// MCP reference server; others are among the Python packages.
const MCP_SERVER: &str = "@modelcontextprotocol/server-everything@2026.8.31";

/// Programs of others. Each directory has a lock file for npm, with checksums.
const PROGRAMS: &str = "conformance/programs";

/// Programs on npm, and whether they need their optional packages. Those of the SDKs are another engine.
const NPM_PROGRAMS: [(&str, OptionalPackages); 4] = [
    ("acp-adapter", OptionalPackages::Omit),
    ("ai-sdk", OptionalPackages::Omit),
    // The program itself is an optional package, one for each system.
    ("ccusage", OptionalPackages::Install),
    ("kimi-sdk", OptionalPackages::Omit),
];

/// Programs on PyPI, with checksums.
const PYTHON_PROGRAMS: &str = "conformance/programs/requirements.txt";

#[derive(Clone, Copy)]
enum OptionalPackages {
    Install,
    Omit,
}

/// Installs missing dependencies and runs the suite; `pytest_args` are further arguments for pytest.
pub(crate) fn run(pytest_args: &[String]) -> Result<()> {
    command::run("cargo build --package whimbrel-cli --locked")?;
    command::run("cargo build --package whimbrel-store-sqlite --example serve_store --locked")?;
    install_python_sdk()?;
    for version in TYPESCRIPT_SDK_VERSIONS {
        install_typescript_sdk(version)?;
    }
    install_mcp_server()?;
    for (program, optional) in NPM_PROGRAMS {
        install_npm_program(program, optional)?;
    }
    install_python_programs()?;
    let python = workspace_path(".check/venv/bin/python");
    let mut args =
        vec![python.as_str(), "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "conformance"];
    args.extend(pytest_args.iter().map(String::as_str));
    let (engine, check_dir) = (workspace_path("target/debug/whimbrel"), workspace_path(".check"));
    let store = workspace_path("target/debug/examples/serve_store");
    let this_program = command::this_program()?;
    let env = [
        ("WHIMBREL", engine.as_str()),
        ("WHIMBREL_STORE", &store),
        ("WHIMBREL_CHECK", &check_dir),
        // Makes the packages, if a test needs them.
        ("WHIMBREL_XTASK", &this_program.display().to_string()),
    ];
    run_args(&args, &env)
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
    install_once(&dir, &format!("{sdk} {ZOD} without an engine"), || {
        let install =
            ["npm", "install", "--prefix", &dir, "--omit=optional", "--omit=peer", "--ignore-scripts"];
        run_args(&[&install[..], &["--no-audit", "--no-fund", "--no-save", &sdk, ZOD]].concat(), &[])?;
        let engine = Path::new(&dir).join(ENGINE_OF_OLD_SDK);
        match fs::remove_file(&engine) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot remove {}", engine.display()))
            }
            _ => Ok(()),
        }
    })
}

fn install_mcp_server() -> Result<()> {
    let dir = workspace_path(".check/servers");
    install_once(&dir, MCP_SERVER, || {
        let install = ["npm", "install", "--prefix", &dir, "--omit=optional", "--ignore-scripts"];
        run_args(&[&install[..], &["--no-audit", "--no-fund", "--no-save", MCP_SERVER]].concat(), &[])
    })
}

fn install_npm_program(program: &str, optional: OptionalPackages) -> Result<()> {
    let source = workspace_path(&format!("{PROGRAMS}/{program}"));
    let dir = workspace_path(&format!(".check/programs/{program}"));
    let lock_file = format!("{source}/package-lock.json");
    let lock = fs::read_to_string(&lock_file).with_context(|| format!("cannot read {lock_file}"))?;
    install_once(&dir, &lock, || {
        copy_package_files(&source, &dir)?;
        let command: &[&str] = match optional {
            OptionalPackages::Omit => &["npm", "ci", "--omit=optional"],
            // Not `npm ci`, which needs a checksum for every system: the lock file has that of x86_64 Linux.
            OptionalPackages::Install => &["npm", "install"],
        };
        let flags = ["--prefix", &dir, "--ignore-scripts", "--no-audit", "--no-fund"];
        run_args(&[command, &flags].concat(), &[])
    })
}

/// Installs into an environment of their own, because they need an older MCP library than the suite.
fn install_python_programs() -> Result<()> {
    let requirements = workspace_path(PYTHON_PROGRAMS);
    let pinned = fs::read_to_string(&requirements).with_context(|| format!("cannot read {requirements}"))?;
    let dir = workspace_path(".check/programs/python");
    install_once(&dir, &pinned, || {
        run_args(&["python3", "-m", "venv", &dir], &[])?;
        let python = format!("{dir}/bin/python");
        let install = [python.as_str(), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        let locked =
            ["--no-deps", "--require-hashes", "--only-binary", ":all:", "--requirement", &requirements];
        run_args(&[&install[..], &locked].concat(), &[])
    })
}
