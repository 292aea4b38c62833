//! `cargo xtask package --binary FILE --out DIR`: makes the packages of a release from a built program: a tarball, a
//! Python wheel, an npm package, on Linux a Debian package, and `SHA256SUMS`. The same program gives the same bytes.
//!
//! Modules: [`contents`] (what is installed), [`executable`] (what the program needs of a system), [`third_party`]
//! (licenses of libraries), [`tarball`], [`wheel`], [`npm`] and [`debian`] (one package each), [`version`] (forms of a
//! version), [`archive`] and [`compression`] (file formats).

mod archive;
mod compression;
mod contents;
mod debian;
mod executable;
mod npm;
mod tarball;
mod third_party;
mod version;
mod wheel;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use crate::command::{run_args, stdout};
use compression::{Compression, sha256};
use contents::Contents;
use executable::{Executable, System};

/// Usage of the task.
const USAGE: &str = "usage: cargo xtask package --binary FILE --out DIR [--strip] [--fast]";

/// Version of the release.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Address of the source code.
const REPOSITORY: &str = env!("CARGO_PKG_REPOSITORY");

/// One line about the program, for package managers.
const SUMMARY: &str = "Open agent engine: replaces the executable behind the Claude Agent SDKs";

/// What to package.
#[derive(Debug, PartialEq, Eq)]
struct PackageRequest {
    binary: PathBuf,
    out: PathBuf,
    symbols: Symbols,
    compression: Compression,
}

/// Handling of the symbols of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Symbols {
    Keep,
    Strip,
}

/// A finished package.
struct Package {
    file_name: String,
    content: Vec<u8>,
}

/// Packages a program for a release.
pub(crate) fn package_release(binary: &Path, out: &Path) -> Result<()> {
    write_packages(&PackageRequest {
        binary: binary.to_owned(),
        out: out.to_owned(),
        symbols: Symbols::Keep,
        compression: Compression::Best,
    })
}

/// Packages the program that the arguments name.
pub(crate) fn run(args: &[String]) -> Result<()> {
    write_packages(&parse_args(args)?)
}

fn parse_args(args: &[String]) -> Result<PackageRequest> {
    let (mut binary, mut out) = (None, None);
    let (mut symbols, mut compression) = (Symbols::Keep, Compression::Best);
    let mut rest = args.iter();
    while let Some(argument) = rest.next() {
        let mut value =
            || rest.next().map(PathBuf::from).with_context(|| format!("{argument} needs a value; {USAGE}"));
        match argument.as_str() {
            "--binary" => binary = Some(value()?),
            "--out" => out = Some(value()?),
            "--strip" => symbols = Symbols::Strip,
            "--fast" => compression = Compression::Fast,
            other => bail!("{other:?} is not expected; {USAGE}"),
        }
    }
    let binary = binary.with_context(|| format!("--binary is missing; {USAGE}"))?;
    let out = out.with_context(|| format!("--out is missing; {USAGE}"))?;
    // Commands run in the workspace, whatever the current directory is.
    Ok(PackageRequest {
        binary: std::path::absolute(binary)?,
        out: std::path::absolute(out)?,
        symbols,
        compression,
    })
}

fn write_packages(request: &PackageRequest) -> Result<()> {
    let binary = &request.binary;
    check_version(binary)?;
    let program = read_program(binary, request.symbols)?;
    let executable =
        Executable::parse(&program).with_context(|| format!("cannot package {}", binary.display()))?;
    let contents = Contents::collect(binary, program, &executable)?;
    let mut packages = vec![
        tarball::build(&contents, &executable, request.compression)?,
        wheel::build(&contents, &executable, request.compression)?,
        npm::build(&contents, &executable, request.compression)?,
    ];
    match &executable.system {
        System::Linux { libraries } => {
            packages.push(debian::build(&contents, &executable, libraries, request.compression)?);
        }
        System::MacOs { .. } => {}
    }
    fs::create_dir_all(&request.out).with_context(|| format!("cannot create {}", request.out.display()))?;
    let mut sums = String::new();
    packages.sort_by(|one, other| one.file_name.cmp(&other.file_name));
    for Package { file_name, content } in &packages {
        sums += &format!("{}  {file_name}\n", sha256(content)?);
        write_file(&request.out.join(file_name), content)?;
    }
    write_file(&request.out.join("SHA256SUMS"), sums.as_bytes())
}

fn write_file(path: &Path, content: &[u8]) -> Result<()> {
    fs::write(path, content).with_context(|| format!("cannot write {}", path.display()))
}

/// Fails if the program is of another version than the source, such as an old build.
fn check_version(binary: &Path) -> Result<()> {
    let line = stdout(&[path_text(binary)?, "--version"])?;
    ensure!(
        line.trim_end().ends_with(&format!("(Whimbrel {VERSION})")),
        "{} is version {:?}, but the source is {VERSION}; build it again",
        binary.display(),
        line.trim_end()
    );
    Ok(())
}

/// Reads the program, without its symbols if they are to be removed. The file itself stays as it is.
fn read_program(binary: &Path, symbols: Symbols) -> Result<Vec<u8>> {
    let read = |path: &Path| fs::read(path).with_context(|| format!("cannot read {}", path.display()));
    match symbols {
        Symbols::Keep => read(binary),
        Symbols::Strip => {
            let dir = tempfile::tempdir().context("cannot create a temporary directory")?;
            let copy = dir.path().join("whimbrel");
            run_args(&["strip", "-o", path_text(&copy)?, path_text(binary)?], &[])?;
            read(&copy)
        }
    }
}

fn path_text(path: &Path) -> Result<&str> {
    path.to_str().with_context(|| format!("{} is not UTF-8", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_line(line: &str) -> Result<PackageRequest> {
        parse_args(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn arguments_are_parsed() {
        assert_eq!(
            parse_line("--binary /b --out /o --fast --strip").unwrap(),
            PackageRequest {
                binary: "/b".into(),
                out: "/o".into(),
                symbols: Symbols::Strip,
                compression: Compression::Fast
            }
        );
        for (line, words) in [
            ("--out /o", "--binary is missing"),
            ("--binary /b", "--out is missing"),
            ("--binary", "--binary needs a value"),
            ("--binary /b --out /o all", "\"all\" is not expected"),
        ] {
            let error = parse_line(line).unwrap_err().to_string();
            assert!(error.contains(words) && error.contains("usage: "), "{error}");
        }
    }
}
