//! Linker options of optimized builds, where linker and loader are known to support them. Every touched page of the
//! executable costs memory in every process, together with the neighbors that the kernel reads ahead. So identical
//! functions are folded and relocations are packed; a `dist` build also places the functions of an everyday session
//! side by side (`cargo xtask dist`).

use std::error::Error;
use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

/// Environment variable with the path of a link order: patterns of function names, one per line, to be placed first.
const LINK_ORDER_VARIABLE: &str = "WHIMBREL_LINK_ORDER";

/// First glibc whose loader reads packed relocations.
const MIN_GLIBC_FOR_PACKED_RELOCS: (u32, u32) = (2, 36);

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed={LINK_ORDER_VARIABLE}");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    // rustc ships lld for this target. A custom linker comes with options of its own.
    let own_linker = env::var("RUSTC_LINKER").is_ok()
        || env::var("CARGO_ENCODED_RUSTFLAGS").is_ok_and(|flags| flags.contains("link"));
    // The profile `dist` inherits from `release`.
    if own_linker || !is("TARGET", "x86_64-unknown-linux-gnu") || !is("PROFILE", "release") {
        return Ok(());
    }
    println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
    if let Some(list) = env::var_os(LINK_ORDER_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from) {
        println!("cargo::rerun-if-changed={}", list.display());
        println!("cargo::rustc-link-arg-bins=-Wl,-T,{}", write_linker_script(&list)?.display());
    }
    if is("HOST", "x86_64-unknown-linux-gnu")
        && glibc_version().is_some_and(|version| version >= MIN_GLIBC_FOR_PACKED_RELOCS)
    {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
    Ok(())
}

/// Writes a linker script that places the listed functions first. Functions that the compiler considers unlikely have
/// sections with another prefix.
fn write_linker_script(list: &PathBuf) -> Result<PathBuf, Box<dyn Error>> {
    let names =
        fs::read_to_string(list).map_err(|error| format!("cannot read {}: {error}", list.display()))?;
    let sections: String = (names.lines().filter(|line| !line.starts_with('#')))
        .map(|name| format!("    *(.text.{name} .text.unlikely.{name})\n"))
        .collect();
    let path = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?).join("link-order.ld");
    fs::write(&path, format!("SECTIONS {{\n  .text.first : {{\n{sections}  }}\n}}\nINSERT BEFORE .text;\n"))?;
    Ok(path)
}

/// Returns the version of this machine's C library, assumed to be the oldest one that the program runs on.
fn glibc_version() -> Option<(u32, u32)> {
    #[expect(clippy::disallowed_methods, reason = "this runs while the program is built")]
    let output = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
