//! What an executable needs of the system it runs on, read from its headers, and the names that package managers have
//! for such systems. Pure.
//!
//! Modules: [`elf`] (Linux), [`mach_o`] (macOS), [`bytes`] (reading numbers).

mod bytes;
mod elf;
mod mach_o;

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};

/// An executable: the processor and the system it is made for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Executable {
    pub(super) architecture: Architecture,
    pub(super) system: System,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Architecture {
    X86_64,
    Aarch64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum System {
    /// Linux with the GNU C library.
    Linux {
        /// The shared libraries it loads, each with the versions of the symbols it uses.
        libraries: BTreeMap<String, Vec<String>>,
    },
    MacOs {
        /// The oldest version it runs on.
        oldest: Version,
    },
}

/// A version of a system or library: major, minor.
pub(super) type Version = (u32, u32);

/// Libraries that every Linux system with glibc has, by Debian package.
const LIBC_FILES: [&str; 7] = [
    "libc.so.6",
    "libm.so.6",
    "libdl.so.2",
    "libpthread.so.0",
    "librt.so.1",
    "ld-linux-x86-64.so.2",
    "ld-linux-aarch64.so.1",
];
const LIBGCC_FILE: &str = "libgcc_s.so.1";

/// Symbol version of packed relocations, and the first glibc that has it.
const PACKED_RELOCATIONS: (&str, Version) = ("GLIBC_ABI_DT_RELR", (2, 36));

impl Executable {
    /// Reads the headers of an executable.
    pub(super) fn parse(file: &[u8]) -> Result<Self> {
        match file {
            [0x7f, b'E', b'L', b'F', ..] => elf::parse(file),
            [0xcf, 0xfa, 0xed, 0xfe, ..] => mach_o::parse(file),
            _ => bail!("the file is not a 64-bit executable of Linux or macOS"),
        }
    }

    /// Name of the target in the words of the Rust compiler.
    pub(super) fn target(&self) -> String {
        let architecture = match self.architecture {
            Architecture::X86_64 => "x86_64",
            Architecture::Aarch64 => "aarch64",
        };
        match self.system {
            System::Linux { .. } => format!("{architecture}-unknown-linux-gnu"),
            System::MacOs { .. } => format!("{architecture}-apple-darwin"),
        }
    }

    /// Platform tag of a Python wheel.
    pub(super) fn wheel_tag(&self) -> Result<String> {
        Ok(match (&self.system, self.architecture) {
            (System::Linux { libraries }, architecture) => {
                let (major, minor) = oldest_glibc(libraries)?;
                let architecture = match architecture {
                    Architecture::X86_64 => "x86_64",
                    Architecture::Aarch64 => "aarch64",
                };
                format!("manylinux_{major}_{minor}_{architecture}")
            }
            (System::MacOs { oldest: (major, minor) }, architecture) => {
                let architecture = match architecture {
                    Architecture::X86_64 => "x86_64",
                    Architecture::Aarch64 => "arm64",
                };
                // Since macOS 11 only the first number counts.
                let minor = if *major >= 11 { 0 } else { *minor };
                format!("macosx_{major}_{minor}_{architecture}")
            }
        })
    }

    /// Names of system and processor in Node.js: `process.platform` and `process.arch`.
    pub(super) fn node_names(&self) -> (&'static str, &'static str) {
        let system = match self.system {
            System::Linux { .. } => "linux",
            System::MacOs { .. } => "darwin",
        };
        let architecture = match self.architecture {
            Architecture::X86_64 => "x64",
            Architecture::Aarch64 => "arm64",
        };
        (system, architecture)
    }

    /// Architecture of a Debian package.
    pub(super) fn debian_architecture(&self) -> &'static str {
        match self.architecture {
            Architecture::X86_64 => "amd64",
            Architecture::Aarch64 => "arm64",
        }
    }
}

/// Returns the oldest glibc that has everything an executable uses. Fails if it needs libraries that not every system
/// has.
pub(super) fn oldest_glibc(libraries: &BTreeMap<String, Vec<String>>) -> Result<Version> {
    for name in libraries.keys() {
        if !LIBC_FILES.contains(&name.as_str()) && name != LIBGCC_FILE {
            bail!(
                "the executable needs {name}, which not every Linux system has; link that library statically"
            );
        }
    }
    let mut oldest = None;
    for version in libraries.values().flatten().filter(|version| version.starts_with("GLIBC_")) {
        let version = match version.strip_prefix("GLIBC_").and_then(parse_version) {
            Some(version) => version,
            None if version == PACKED_RELOCATIONS.0 => PACKED_RELOCATIONS.1,
            None => bail!("the executable needs {version}, and it is unknown which glibc has it"),
        };
        oldest = oldest.max(Some(version));
    }
    oldest.context("the executable uses no glibc; packages for other C libraries are not supported")
}

/// Returns the `Depends` field of a Debian package.
pub(super) fn debian_dependencies(libraries: &BTreeMap<String, Vec<String>>) -> Result<String> {
    let (major, minor) = oldest_glibc(libraries)?;
    let mut dependencies = format!("libc6 (>= {major}.{minor})");
    if let Some(versions) = libraries.get(LIBGCC_FILE) {
        let newest = versions.iter().filter_map(|version| parse_version(version.strip_prefix("GCC_")?)).max();
        let condition = newest.map(|(major, minor)| format!(" (>= {major}.{minor})")).unwrap_or_default();
        dependencies += &format!(", libgcc-s1{condition}");
    }
    Ok(dependencies)
}

/// Parses `2.34` or `2.2.5`; the third number does not count.
fn parse_version(text: &str) -> Option<Version> {
    let mut numbers = text.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn libraries(rows: &[(&str, &[&str])]) -> BTreeMap<String, Vec<String>> {
        let strings = |versions: &[&str]| versions.iter().map(|version| (*version).to_owned()).collect();
        rows.iter().map(|(name, versions)| ((*name).to_owned(), strings(versions))).collect()
    }

    #[test]
    fn packages_name_the_oldest_system() {
        let linux = System::Linux {
            libraries: libraries(&[
                ("libc.so.6", &["GLIBC_2.2.5", "GLIBC_2.34", "GLIBC_2.9"]),
                ("libgcc_s.so.1", &["GCC_3.0", "GCC_4.2.0", "GCC_3.3"]),
            ]),
        };
        let mac = System::MacOs { oldest: (11, 3) };
        let old_mac = System::MacOs { oldest: (10, 12) };
        let rows = [
            (
                &linux,
                Architecture::X86_64,
                "x86_64-unknown-linux-gnu",
                "manylinux_2_34_x86_64",
                ("linux", "x64"),
            ),
            (
                &linux,
                Architecture::Aarch64,
                "aarch64-unknown-linux-gnu",
                "manylinux_2_34_aarch64",
                ("linux", "arm64"),
            ),
            (&mac, Architecture::Aarch64, "aarch64-apple-darwin", "macosx_11_0_arm64", ("darwin", "arm64")),
            (&old_mac, Architecture::X86_64, "x86_64-apple-darwin", "macosx_10_12_x86_64", ("darwin", "x64")),
        ];
        for (system, architecture, target, tag, node) in rows {
            let executable = Executable { architecture, system: system.clone() };
            assert_eq!(
                (
                    executable.target().as_str(),
                    executable.wheel_tag().unwrap().as_str(),
                    executable.node_names()
                ),
                (target, tag, node)
            );
        }
        let System::Linux { libraries } = linux else { panic!() };
        assert_eq!(debian_dependencies(&libraries).unwrap(), "libc6 (>= 2.34), libgcc-s1 (>= 4.2)");
    }

    #[test]
    fn glibc_is_the_oldest_that_has_every_symbol() {
        let rows: [(&[&str], Result<Version, &str>); 4] = [
            (&["GLIBC_2.17", "GLIBC_2.5"], Ok((2, 17))),
            (&["GLIBC_2.17", "GLIBC_ABI_DT_RELR"], Ok((2, 36))),
            (&["GLIBC_2.17", "GLIBC_PRIVATE"], Err("GLIBC_PRIVATE")),
            (&[], Err("no glibc")),
        ];
        for (versions, expected) in rows {
            match (oldest_glibc(&libraries(&[("libc.so.6", versions)])), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{versions:?}"),
                (Err(error), Err(words)) => assert!(error.to_string().contains(words), "{error}"),
                (found, _) => panic!("{versions:?}: {found:?}"),
            }
        }
        let error = oldest_glibc(&libraries(&[("libssl.so.3", &[])])).unwrap_err();
        assert!(error.to_string().contains("libssl.so.3"), "{error}");
    }

    #[test]
    fn other_files_are_rejected() {
        assert!(
            Executable::parse(b"#!/bin/sh\n").unwrap_err().to_string().contains("not a 64-bit executable")
        );
        assert!(Executable::parse(b"\x7fELF").is_err());
        assert!(Executable::parse(b"\xcf\xfa\xed\xfe").is_err());
    }
}
