//! Instructions of classic BPF, as the kernel takes them, and the fields of its data about a system call.

/// An instruction, with the layout of the kernel's `sock_filter`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Instruction {
    pub(crate) code: u16,
    pub(crate) jump_true: u8,
    pub(crate) jump_false: u8,
    pub(crate) value: u32,
}

pub(crate) const LOAD: u16 = 0x20;
pub(crate) const AND: u16 = 0x54;
pub(crate) const RETURN: u16 = 0x06;
pub(crate) const JUMP_EQUAL: u16 = 0x15;
pub(crate) const JUMP_GREATER_EQUAL: u16 = 0x35;
pub(crate) const JUMP_ANY_BIT: u16 = 0x45;

pub(crate) const RETURN_ALLOW: u32 = 0x7fff_0000;
pub(crate) const RETURN_ERROR: u32 = 0x0005_0000;

/// Offset of the number of the system call.
pub(crate) const NUMBER: u32 = 0;
/// Offset of the architecture.
pub(crate) const ARCHITECTURE: u32 = 4;

/// Offset of the low 32 bits of an argument, on little-endian machines. The kernel compares 32 bits where it takes an
/// `int`, so the high bits say nothing.
pub(crate) const fn argument(index: u32) -> u32 {
    16 + 8 * index
}

pub(crate) const fn load(offset: u32) -> Instruction {
    Instruction { code: LOAD, jump_true: 0, jump_false: 0, value: offset }
}

pub(crate) const fn and(mask: u32) -> Instruction {
    Instruction { code: AND, jump_true: 0, jump_false: 0, value: mask }
}

pub(crate) const fn finish(answer: u32) -> Instruction {
    Instruction { code: RETURN, jump_true: 0, jump_false: 0, value: answer }
}

/// Jumps over `jump_true` or `jump_false` instructions.
pub(crate) const fn jump(code: u16, value: u32, jump_true: u8, jump_false: u8) -> Instruction {
    Instruction { code, jump_true, jump_false, value }
}
