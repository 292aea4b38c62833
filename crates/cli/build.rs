//! How the program is linked, where the linker and the loader are known to understand it. Every page of the file that a
//! process touches is paid for by that process, so the release build folds functions that are the same and keeps its
//! relocations packed.

use std::env;
use std::process::Command;

/// The first glibc whose loader reads packed relocations.
const PACKED_SINCE: (u32, u32) = (2, 36);

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    // For this target rustc brings lld along. Somebody who has chosen a linker has also chosen its options.
    let own_linker = env::var("RUSTC_LINKER").is_ok()
        || env::var("CARGO_ENCODED_RUSTFLAGS").is_ok_and(|flags| flags.contains("link"));
    if own_linker || !is("TARGET", "x86_64-unknown-linux-gnu") || !is("PROFILE", "release") {
        return;
    }
    println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
    if is("HOST", "x86_64-unknown-linux-gnu") && glibc().is_some_and(|version| version >= PACKED_SINCE) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// The C library of this machine, which is taken for the oldest one that the program meets.
fn glibc() -> Option<(u32, u32)> {
    #[expect(clippy::disallowed_methods, reason = "this runs while the program is built")]
    let told = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let told = String::from_utf8(told.stdout).ok()?;
    let (major, minor) = told.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
