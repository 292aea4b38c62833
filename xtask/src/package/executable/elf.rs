//! Executables of Linux (ELF): the processor, the shared libraries, and the symbol versions used of each.

use std::collections::BTreeMap;

use anyhow::{Result, bail};

use super::bytes::{offset_at, range, small_offset_at, text_at, u16_at, u32_at};
use super::{Architecture, Executable, System};

/// Types of sections.
const DYNAMIC: u32 = 6;
const VERSION_NEEDS: u32 = 0x6fff_fffe;

/// Entry of the dynamic section that names a library.
const NEEDED_LIBRARY: usize = 1;

/// Sizes of table entries.
const SECTION_HEADER_BYTES: usize = 64;
const DYNAMIC_ENTRY_BYTES: usize = 16;

/// A section with the table of its texts.
struct Section<'a> {
    kind: u32,
    content: &'a [u8],
    texts: &'a [u8],
}

pub(super) fn parse(file: &[u8]) -> Result<Executable> {
    // 64-bit, little-endian.
    if range(file, 4, 2)? != [2, 1] {
        bail!("the executable is not made for a 64-bit little-endian processor");
    }
    let architecture = match u16_at(file, 18)? {
        62 => Architecture::X86_64,
        183 => Architecture::Aarch64,
        other => bail!("executables for ELF machine {other} are not packaged; known are x86_64 and aarch64"),
    };
    let mut libraries: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for section in read_sections(file)? {
        match section.kind {
            DYNAMIC => {
                for name in needed_libraries(&section)? {
                    libraries.entry(name).or_default();
                }
            }
            VERSION_NEEDS => {
                for (name, versions) in needed_versions(&section)? {
                    libraries.entry(name).or_default().extend(versions);
                }
            }
            _ => {}
        }
    }
    Ok(Executable { architecture, system: System::Linux { libraries } })
}

fn read_sections(file: &[u8]) -> Result<Vec<Section<'_>>> {
    let (start, count) = (offset_at(file, 40)?, usize::from(u16_at(file, 60)?));
    let headers = range(file, start, count * SECTION_HEADER_BYTES)?;
    let header = |index: usize| range(headers, index * SECTION_HEADER_BYTES, SECTION_HEADER_BYTES);
    let content = |header: &[u8]| range(file, offset_at(header, 24)?, offset_at(header, 32)?);
    let mut sections = Vec::new();
    for index in 0..count {
        let this = header(index)?;
        let kind = u32_at(this, 4)?;
        if matches!(kind, DYNAMIC | VERSION_NEEDS) {
            let texts = content(header(small_offset_at(this, 40)?)?)?;
            sections.push(Section { kind, content: content(this)?, texts });
        }
    }
    Ok(sections)
}

fn needed_libraries(section: &Section) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in section.content.chunks_exact(DYNAMIC_ENTRY_BYTES) {
        if offset_at(entry, 0)? == NEEDED_LIBRARY {
            names.push(text_at(section.texts, offset_at(entry, 8)?)?);
        }
    }
    Ok(names)
}

/// Reads a list of libraries, each with a list of versions. Every entry gives the distance to the next, 0 for none.
fn needed_versions(section: &Section) -> Result<Vec<(String, Vec<String>)>> {
    let content = section.content;
    let mut libraries = Vec::new();
    let mut library = 0;
    loop {
        let mut versions = Vec::new();
        let mut version = library + small_offset_at(content, library + 8)?;
        loop {
            versions.push(text_at(section.texts, small_offset_at(content, version + 8)?)?);
            match small_offset_at(content, version + 12)? {
                0 => break,
                distance => version += distance,
            }
        }
        libraries.push((text_at(section.texts, small_offset_at(content, library + 4)?)?, versions));
        match small_offset_at(content, library + 12)? {
            0 => return Ok(libraries),
            distance => library += distance,
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::super::oldest_glibc;
    use super::*;

    #[test]
    fn this_program_needs_a_known_glibc() {
        let file = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let executable = parse(&file).unwrap();
        let System::Linux { libraries } = &executable.system else { panic!("{executable:?}") };
        assert!(libraries["libc.so.6"].len() > 1, "{libraries:?}");
        assert!(oldest_glibc(libraries).unwrap() >= (2, 17));
        assert_eq!(executable.target().split('-').next(), Some(std::env::consts::ARCH));
    }
}
