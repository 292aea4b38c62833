//! Runs commands: prints each before it runs, and stops at the first failure.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// Root directory of the workspace.
pub(crate) fn workspace_root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// Runs a command line in the workspace; arguments are separated by spaces.
pub(crate) fn run(line: &str) -> Result<()> {
    let words: Vec<&str> = line.split_whitespace().collect();
    run_args(&words, &[])
}

/// Runs a command with additional environment variables.
pub(crate) fn run_args(words: &[&str], env: &[(&str, &str)]) -> Result<()> {
    let [program, args @ ..] = words else { bail!("an empty command") };
    print_line(&format!("$ {}", words.join(" ")));
    let status = workspace_command(program).args(args).envs(env.iter().copied()).status();
    let status = status.with_context(|| format!("{program} cannot be started; is it installed?"))?;
    if !status.success() {
        bail!("`{}` failed with {status}", words.join(" "));
    }
    Ok(())
}

/// Returns the standard output of a command.
pub(crate) fn output(words: &[&str]) -> Result<String> {
    let [program, args @ ..] = words else { bail!("an empty command") };
    let run = workspace_command(program).args(args).output();
    let run = run.with_context(|| format!("{program} cannot be started; is it installed?"))?;
    if !run.status.success() {
        bail!("`{}` failed: {}", words.join(" "), String::from_utf8_lossy(&run.stderr));
    }
    String::from_utf8(run.stdout).with_context(|| format!("{program} wrote what is no text"))
}

/// Returns true if a command succeeds; prints nothing.
pub(crate) fn succeeds(program: &str, args: &[&str]) -> bool {
    workspace_command(program).args(args).output().is_ok_and(|output| output.status.success())
}

#[expect(clippy::disallowed_methods, reason = "starting programs is what this file is for")]
fn workspace_command(program: &str) -> Command {
    let mut command = Command::new(program);
    command.current_dir(workspace_root());
    command
}

#[expect(clippy::print_stderr, reason = "a chore tells the person at the terminal what it does")]
fn print_line(line: &str) {
    eprintln!("{line}");
}
