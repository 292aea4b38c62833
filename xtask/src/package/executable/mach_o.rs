//! Executables of macOS (Mach-O): the processor and the oldest version of the system.

use anyhow::{Context, Result, bail};

use super::bytes::{range, small_offset_at, u32_at};
use super::{Architecture, Executable, System, Version};

/// Load commands that give the oldest version, and where in the command it is.
const BUILD_VERSION: (u32, usize) = (0x32, 12);
const OLDEST_MACOS: (u32, usize) = (0x24, 8);

/// Size of the file header, which the load commands follow.
const HEADER_BYTES: usize = 32;

pub(super) fn parse(file: &[u8]) -> Result<Executable> {
    let architecture = match u32_at(file, 4)? {
        0x0100_0007 => Architecture::X86_64,
        0x0100_000c => Architecture::Aarch64,
        other => bail!(
            "executables for Mach-O processor {other:#x} are not packaged; known are x86_64 and aarch64"
        ),
    };
    let oldest = oldest_version(file)?.context("the executable does not say which macOS it needs")?;
    Ok(Executable { architecture, system: System::MacOs { oldest } })
}

fn oldest_version(file: &[u8]) -> Result<Option<Version>> {
    let mut offset = HEADER_BYTES;
    for _ in 0..u32_at(file, 16)? {
        let size = small_offset_at(file, offset + 4)?;
        let command = range(file, offset, size)?;
        for (kind, position) in [BUILD_VERSION, OLDEST_MACOS] {
            if u32_at(command, 0)? == kind {
                let version = u32_at(command, position)?;
                return Ok(Some((version >> 16, (version >> 8) & 0xff)));
            }
        }
        offset += size.max(8);
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_read_from_either_command() {
        let header = |processor: u32| {
            let words = [0xfeed_facf, processor, 0, 2, 2, 48, 0, 0];
            words.map(u32::to_le_bytes).concat()
        };
        let other = [0x19, 16, 0, 0].map(u32::to_le_bytes).concat();
        let build = [0x32, 24, 1, 0x000b_0000, 0, 0].map(u32::to_le_bytes).concat();
        let minimum = [0x24, 16, 0x000a_0c00, 0].map(u32::to_le_bytes).concat();
        for (processor, command, expected) in [
            (
                0x0100_000c,
                build,
                Executable { architecture: Architecture::Aarch64, system: System::MacOs { oldest: (11, 0) } },
            ),
            (
                0x0100_0007,
                minimum,
                Executable { architecture: Architecture::X86_64, system: System::MacOs { oldest: (10, 12) } },
            ),
        ] {
            let file = [header(processor), other.clone(), command].concat();
            assert_eq!(parse(&file).unwrap(), expected);
            assert!(parse(&file[..file.len() - 10]).is_err());
        }
    }
}
