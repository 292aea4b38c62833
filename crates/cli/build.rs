//! How the program is linked, where the linker and the loader are known to understand it. Every page of the file that a
//! process touches is paid for by that process, and the kernel brings in its neighbours, too. So the release build folds
//! functions that are the same, puts those side by side that an everyday session wakes, and keeps its relocations packed.

use std::error::Error;
use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

/// What an everyday session wakes: patterns of function names, made by `cargo xtask awake`.
const LINK_ORDER_FILE: &str = "awake.txt";

/// `compiler` leaves functions where the compiler put them: then valgrind finds them, see `cargo xtask awake`.
const LAYOUT_VARIABLE: &str = "WHIMBREL_LAYOUT";

/// The first glibc whose loader reads packed relocations.
const MIN_GLIBC_FOR_PACKED_RELOCS: (u32, u32) = (2, 36);

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={LINK_ORDER_FILE}");
    println!("cargo::rerun-if-env-changed={LAYOUT_VARIABLE}");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    // For this target rustc brings lld along. Somebody who has chosen a linker has also chosen its options.
    let own_linker = env::var("RUSTC_LINKER").is_ok()
        || env::var("CARGO_ENCODED_RUSTFLAGS").is_ok_and(|flags| flags.contains("link"));
    if own_linker || !is("TARGET", "x86_64-unknown-linux-gnu") || !is("PROFILE", "release") {
        return Ok(());
    }
    println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
    if !is(LAYOUT_VARIABLE, "compiler") {
        println!("cargo::rustc-link-arg-bins=-Wl,-T,{}", write_linker_script()?.display());
    }
    if is("HOST", "x86_64-unknown-linux-gnu") && glibc_version().is_some_and(|version| version >= MIN_GLIBC_FOR_PACKED_RELOCS) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
    Ok(())
}

/// The linker script that puts what is awake before the rest. Functions that the compiler holds for unlikely have sections
/// of another kind.
fn write_linker_script() -> Result<PathBuf, Box<dyn Error>> {
    let awake = fs::read_to_string(LINK_ORDER_FILE)?;
    let sections = awake.lines().filter(|line| !line.starts_with('#'));
    let sections: String =
        sections.map(|name| format!("    *(.text.{name} .text.unlikely.{name})\n")).collect();
    let path = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo has named no folder")?).join("awake.ld");
    fs::write(&path, format!("SECTIONS {{\n  .text.awake : {{\n{sections}  }}\n}}\nINSERT BEFORE .text;\n"))?;
    Ok(path)
}

/// The C library of this machine, which is taken for the oldest one that the program meets.
fn glibc_version() -> Option<(u32, u32)> {
    #[expect(clippy::disallowed_methods, reason = "this runs while the program is built")]
    let told = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let told = String::from_utf8(told.stdout).ok()?;
    let (major, minor) = told.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
