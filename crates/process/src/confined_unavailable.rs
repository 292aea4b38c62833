//! Commands in the sandbox, on systems that have none: no value of these types exists.

use std::convert::Infallible;

use crate::process_exit::ProcessExit;

/// A command that the sandbox has prepared.
#[derive(Debug)]
pub struct ConfinedCommand(Infallible);

/// Our end of a started command.
#[derive(Debug)]
pub(crate) struct ConfinedControl(Infallible);

/// Dropped when a confined command and all that it started are gone.
pub(crate) type ConfinedEnd = Infallible;

impl ConfinedCommand {
    pub(crate) fn into_parts(self) -> (std::process::Command, ConfinedControl, ConfinedEnd) {
        match self.0 {}
    }
}

impl ConfinedControl {
    pub(crate) async fn wait(&mut self) -> ProcessExit {
        match self.0 {}
    }

    pub(crate) fn terminate(&self) {
        match self.0 {}
    }

    pub(crate) fn take_setup_error(&mut self) -> Option<String> {
        match self.0 {}
    }

    pub(crate) fn take_stdin(&mut self) -> Option<tokio::process::ChildStdin> {
        match self.0 {}
    }
}
