//! `whimbrel mcp serve`: our tools as an MCP server over stdin and stdout.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use tokio::fs::File;
use tokio::runtime::Builder;
use tokio_util::sync::CancellationToken;
use whimbrel_engine::SessionExit;
use whimbrel_engine::mcp_server::serve_tools;

use super::help_page;
use crate::caller::Caller;
use crate::environment::{Env, prepare_environment};
use crate::exit_code::{ExitCodeCompat, exit_code};
use crate::flags::{self, CliCommand, ParsedArgs};
use crate::serve_session::PreparedSession;
use crate::shutdown::{Shutdown, watch_signals};
use crate::stdio::{self, print_note, report_error};

/// Serves until the client disconnects, and returns the exit code.
pub(super) fn main(argv: &[String], env: Env) -> i32 {
    let parsed = flags::parse(argv, Caller::User, &|path| std::fs::read_to_string(path));
    match parsed.and_then(|parsed| serve(parsed, env)) {
        Ok(code) => code,
        Err(text) => report_error(&text),
    }
}

fn serve(ParsedArgs { mut args, warnings }: ParsedArgs, mut env: Env) -> Result<i32, String> {
    match args.command {
        CliCommand::Run => {}
        CliCommand::Help => {
            return stdio::print(help_page()).map(|()| 0).map_err(|error| error.to_string());
        }
        CliCommand::Demo | CliCommand::Explain | CliCommand::Version => {
            return Err("mcp serve takes flags only. See whimbrel mcp --help.".into());
        }
    }
    if let Some(text) = &args.prompt {
        return Err(format!("mcp serve takes no prompt, but {text:?} was given. See whimbrel mcp --help."));
    }
    warnings.iter().for_each(|warning| print_note(warning));
    args.options.persist_session = Some(false);
    prepare_environment(&args, Caller::User, &mut env)?;
    // This process runs the engine: no process that a command leaves behind may outlive it.
    whimbrel_process::track_daemons();
    let start_error = |error: io::Error| format!("Cannot start: {error}.");
    let (stop, runtime) =
        (CancellationToken::new(), Builder::new_current_thread().enable_all().build().map_err(start_error)?);
    let shutdown = Shutdown::new(stop.clone());
    watch_signals(shutdown.clone()).map_err(start_error)?;
    stdio::watch_stdout(shutdown.clone()).map_err(start_error)?;
    let PreparedSession { engine, request } = PreparedSession::new(args.options, env);
    let (input, output) = (io::stdin(), io::stdout());
    let streams =
        (open_stream(input.as_fd()).map_err(start_error)?, open_stream(output.as_fd()).map_err(start_error)?);
    let served = runtime.block_on(serve_tools(engine, request, streams, stop, print_note));
    // A read of stdin may block for ever.
    runtime.shutdown_background();
    served.map_err(|error| error.to_string())?;
    Ok(exit_code(shutdown.reason(), &SessionExit::default(), ExitCodeCompat::Standard))
}

/// Opens one of our standard streams without a buffer.
fn open_stream(descriptor: BorrowedFd<'_>) -> io::Result<File> {
    Ok(File::from_std(std::fs::File::from(descriptor.try_clone_to_owned()?)))
}
