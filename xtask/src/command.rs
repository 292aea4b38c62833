//! Runs commands in the workspace: prints each before it runs, and stops at the first failure.

use std::io::{Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use anyhow::{Context, Result, bail};

/// Root directory of the workspace.
pub(crate) fn workspace_root() -> PathBuf {
    let manifest_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest_dir.parent().unwrap_or(manifest_dir).to_path_buf()
}

/// Cargo's target directory.
pub(crate) fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace_root().join("target"), PathBuf::from)
}

/// Runs a command line in the workspace; arguments are separated by spaces.
pub(crate) fn run(line: &str) -> Result<()> {
    let words: Vec<&str> = line.split_whitespace().collect();
    run_args(&words, &[])
}

/// Runs a command with additional environment variables.
pub(crate) fn run_args(words: &[&str], env: &[(&str, &str)]) -> Result<()> {
    let [program, args @ ..] = words else { bail!("the command is empty") };
    print_line(&format!("$ {}", words.join(" ")));
    let status = workspace_command(program).args(args).envs(env.iter().copied()).status();
    let status = status.with_context(|| format!("{program} cannot be started; is it installed?"))?;
    if !status.success() {
        bail!("`{}` failed with {status}", words.join(" "));
    }
    Ok(())
}

/// Returns the standard output of a command; prints nothing.
pub(crate) fn stdout(words: &[&str]) -> Result<String> {
    String::from_utf8(capture(words)?.stdout)
        .with_context(|| format!("`{}` did not print UTF-8", words.join(" ")))
}

/// Returns the standard error of a command; prints nothing.
pub(crate) fn stderr(words: &[&str]) -> Result<String> {
    Ok(String::from_utf8_lossy(&capture(words)?.stderr).into_owned())
}

/// Passes bytes through a command and returns its standard output; prints nothing.
pub(crate) fn filter(words: &[&str], input: &[u8]) -> Result<Vec<u8>> {
    // A file, because a pipe would need a thread.
    let mut file = tempfile::tempfile().context("cannot create a temporary file")?;
    file.write_all(input).and_then(|()| file.rewind()).context("cannot write a temporary file")?;
    Ok(capture_with_stdin(words, file.into())?.stdout)
}

fn capture(words: &[&str]) -> Result<Output> {
    capture_with_stdin(words, Stdio::null())
}

fn capture_with_stdin(words: &[&str], stdin: Stdio) -> Result<Output> {
    let [program, args @ ..] = words else { bail!("the command is empty") };
    let output = workspace_command(program).args(args).stdin(stdin).output();
    let output = output.with_context(|| format!("{program} cannot be started; is it installed?"))?;
    if !output.status.success() {
        bail!("`{}` failed: {}", words.join(" "), String::from_utf8_lossy(&output.stderr));
    }
    Ok(output)
}

/// Returns true if a command succeeds; prints nothing.
pub(crate) fn succeeds(program: &str, args: &[&str]) -> bool {
    workspace_command(program).args(args).output().is_ok_and(|output| output.status.success())
}

#[expect(clippy::disallowed_methods, reason = "a task runs programs")]
fn workspace_command(program: &str) -> Command {
    let mut command = Command::new(program);
    command.current_dir(workspace_root());
    command
}

#[expect(clippy::print_stderr, reason = "a task prints what it runs")]
fn print_line(line: &str) {
    eprintln!("{line}");
}

static THIS_PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Notes the path of this program. Later it may be unknown: a build of the whole workspace replaces the file.
pub(crate) fn note_this_program() -> Result<()> {
    let path = std::env::current_exe().context("cannot find the path of this program")?;
    THIS_PROGRAM.get_or_init(|| path);
    Ok(())
}

/// The path of this program, as it was at the start.
pub(crate) fn this_program() -> Result<&'static Path> {
    THIS_PROGRAM.get().map(PathBuf::as_path).context("the path of this program was not noted")
}
