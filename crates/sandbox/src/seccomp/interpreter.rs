//! Runs a filter as the kernel does, for tests.

use super::bpf::{
    AND, ARCHITECTURE, Instruction, JUMP_ANY_BIT, JUMP_EQUAL, JUMP_GREATER_EQUAL, LOAD, NUMBER, RETURN,
    argument,
};

/// A system call, as a filter sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    pub(crate) number: u32,
    pub(crate) architecture: u32,
    pub(crate) arguments: [u64; 6],
}

impl Call {
    fn load(&self, offset: u32) -> u32 {
        match offset {
            NUMBER => self.number,
            ARCHITECTURE => self.architecture,
            offset => {
                let index =
                    (0..6).find(|index| argument(*index) == offset).expect("the filter loads a known field");
                self.arguments[index as usize] as u32
            }
        }
    }
}

/// Returns the answer of a filter.
pub(crate) fn run(filter: &[Instruction], call: Call) -> u32 {
    let (mut position, mut accumulator) = (0, 0);
    loop {
        let Instruction { code, jump_true, jump_false, value } = filter[position];
        position += 1;
        let condition = match code {
            LOAD => {
                accumulator = call.load(value);
                continue;
            }
            AND => {
                accumulator &= value;
                continue;
            }
            RETURN => return value,
            JUMP_EQUAL => accumulator == value,
            JUMP_GREATER_EQUAL => accumulator >= value,
            JUMP_ANY_BIT => accumulator & value != 0,
            other => panic!("unknown instruction {other:#x}"),
        };
        position += usize::from(if condition { jump_true } else { jump_false });
    }
}
