//! How the program is linked, where the linker and the loader are known to understand it. Every page of the file that a
//! process touches is paid for by that process, and the kernel brings in its neighbours, too. So the release build folds
//! functions that are the same, puts those side by side that an everyday session wakes, and keeps its relocations packed.

use std::error::Error;
use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

/// What an everyday session wakes: patterns of function names, made by `cargo xtask awake`.
const AWAKE: &str = "awake.txt";

/// `compiler` leaves functions where the compiler put them: then valgrind finds them, see `cargo xtask awake`.
const LAYOUT: &str = "WHIMBREL_LAYOUT";

/// The first glibc whose loader reads packed relocations.
const PACKED_SINCE: (u32, u32) = (2, 36);

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={AWAKE}");
    println!("cargo::rerun-if-env-changed={LAYOUT}");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    // For this target rustc brings lld along. Somebody who has chosen a linker has also chosen its options.
    let own_linker = env::var("RUSTC_LINKER").is_ok()
        || env::var("CARGO_ENCODED_RUSTFLAGS").is_ok_and(|flags| flags.contains("link"));
    if own_linker || !is("TARGET", "x86_64-unknown-linux-gnu") || !is("PROFILE", "release") {
        return Ok(());
    }
    println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
    if !is(LAYOUT, "compiler") {
        println!("cargo::rustc-link-arg-bins=-Wl,-T,{}", script()?.display());
    }
    if is("HOST", "x86_64-unknown-linux-gnu") && glibc().is_some_and(|version| version >= PACKED_SINCE) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
    Ok(())
}

/// The linker script that puts what is awake before the rest. Functions that the compiler holds for unlikely have sections
/// of another kind.
fn script() -> Result<PathBuf, Box<dyn Error>> {
    let awake = fs::read_to_string(AWAKE)?;
    let sections = awake.lines().filter(|line| !line.starts_with('#'));
    let sections: String =
        sections.map(|name| format!("    *(.text.{name} .text.unlikely.{name})\n")).collect();
    let path = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo has named no folder")?).join("awake.ld");
    fs::write(&path, format!("SECTIONS {{\n  .text.awake : {{\n{sections}  }}\n}}\nINSERT BEFORE .text;\n"))?;
    Ok(path)
}

/// The C library of this machine, which is taken for the oldest one that the program meets.
fn glibc() -> Option<(u32, u32)> {
    #[expect(clippy::disallowed_methods, reason = "this runs while the program is built")]
    let told = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let told = String::from_utf8(told.stdout).ok()?;
    let (major, minor) = told.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
