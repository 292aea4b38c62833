//! `whimbrel sandbox`: what this machine can do to confine commands, and trying a policy by hand.
//!
//! Modules: [`command`], the command line; [`status`]; [`run`].

mod command;
#[cfg(target_os = "linux")]
mod run;
#[cfg(target_os = "linux")]
mod status;

use crate::environment::Env;

/// Help page of `whimbrel sandbox`.
pub(crate) fn help_page() -> &'static str {
    command::HELP_PAGE
}

/// Runs a subcommand and returns the exit code.
#[cfg(target_os = "linux")]
pub(crate) fn main(argv: &[String], env: &Env) -> i32 {
    use crate::stdio::{self, report_error};
    use command::SandboxCommand;

    let done = match command::parse(argv) {
        Ok(SandboxCommand::Help) => Ok((help_page().to_owned(), 0)),
        Ok(SandboxCommand::Status(format)) => status::show(format),
        Ok(SandboxCommand::Run(arguments)) => return run::run(*arguments, env),
        Err(text) => Err(text),
    };
    match done {
        Ok((page, code)) => match stdio::print(&page) {
            Ok(()) => code,
            Err(error) => report_error(&format!("Cannot write the output: {error}.")),
        },
        Err(text) => report_error(&text),
    }
}

/// Says that there is no sandbox on this system.
#[cfg(not(target_os = "linux"))]
pub(crate) fn main(argv: &[String], _env: &Env) -> i32 {
    let text = match command::parse(argv) {
        Ok(command::SandboxCommand::Help) => return i32::from(crate::stdio::print(help_page()).is_err()),
        Ok(_) => "Commands can be confined on Linux only. Run Whimbrel in a container or a virtual machine."
            .to_owned(),
        Err(text) => text,
    };
    crate::stdio::report_error(&text)
}
