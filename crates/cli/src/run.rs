//! The program from start to end.

use std::io;

use whimbrel_engine::SessionRequest;
use whimbrel_os::log::Log;
use whimbrel_transport::link::{HostEnd, pair};
use whimbrel_wire::message::User;
use whimbrel_wire::options::SetupHooks;

use crate::caller::Caller;
use crate::environment::{Env, prepare_environment, resolve_home};
use crate::exit_code::{ExitCodeCompat, FAILURE, exit_code};
use crate::flags::{self, Args, CliCommand, InputFormat, OutputFormat, ParsedArgs, REPLAY_FLAG};
use crate::init_only::run_init_only;
#[cfg(feature = "terminal")]
use crate::interactive;
use crate::official::refuse_subcommand;
use crate::one_prompt::{PrintFormat, run_prompt};
use crate::read_prompt::read_prompt;
use crate::rewind_files::rewind_files;
#[cfg(feature = "serve")]
use crate::serve;
use crate::serve_session::PreparedSession;
use crate::shutdown::{RunOutcome, Shutdown, watch_signals};
use crate::stdio::{MalformedLinePolicy, print_note, report_error};
use crate::terminal::{self, Terminal};
use crate::{
    acp, agents, auth, completions, config, debug_log, demo, doctor, explain_permission, kimi, man_page, mcp,
    missing_key, plugin, sandbox, sessions, stdio,
};

/// Runs the program and returns its exit code.
pub(crate) fn main() -> i32 {
    let mut env: Env =
        std::env::vars_os().filter_map(|(name, value)| Some((to_utf8(name)?, to_utf8(value)?))).collect();
    let variable = |name: &str| env.get(name).map(String::as_str);
    let entrypoint = variable("CLAUDE_CODE_ENTRYPOINT");
    let compat = ExitCodeCompat::from_env(entrypoint, variable("CLAUDE_AGENT_SDK_VERSION"));
    let caller = Caller::from_entrypoint(entrypoint);
    let terminal = Terminal::detect(&env);
    let argv = read_arguments();
    if let Ok(argv) = &argv
        && argv.iter().any(|argument| argument == kimi::WIRE_FLAG)
    {
        return kimi::main(argv, env);
    }
    if let Ok([name, rest @ ..]) = argv.as_deref()
        && let Some(code) = run_subcommand(name, rest, &env, terminal)
    {
        return code;
    }
    let parsed = argv.and_then(|argv| {
        if argv.is_empty() && terminal.stdin && !can_talk(terminal) {
            return Ok(None);
        }
        flags::parse(&argv, caller, &|path| std::fs::read_to_string(path)).map(Some)
    });
    let ParsedArgs { mut args, warnings } = match parsed {
        Ok(Some(parsed)) => parsed,
        Ok(None) => return print_text(flags::usage_page()),
        Err(text) => return report_error(&text),
    };
    warnings.iter().for_each(|warning| print_note(warning));
    args.plain_output |= variable_is_on(&env, "CLAUDE_AX_SCREEN_READER");
    if matches!(args.command, CliCommand::Run | CliCommand::Demo) {
        // This process runs the engine: no process that a command leaves behind may outlive it.
        whimbrel_process::track_daemons();
    }
    match args.command {
        CliCommand::Help => print_text(&flags::help_page(terminal::output_width())),
        CliCommand::Version => print_text(&flags::version_line()),
        CliCommand::Demo => report_exit(demo::run(env, terminal), compat),
        CliCommand::Explain => {
            let Some(call) = args.prompt else {
                return report_error(
                    "The call is missing. Usage: whimbrel permissions explain 'Bash(git push)'.",
                );
            };
            resolve_home(&mut env);
            let as_json = args.output_format == OutputFormat::Json;
            match explain_permission::run(SessionRequest::new(args.options, env), &call, as_json) {
                Ok(()) => 0,
                Err(text) => report_error(&text),
            }
        }
        CliCommand::Run => match start_run(&args, caller, env, compat, terminal) {
            Ok(code) => code,
            Err(text) => report_error(&text),
        },
    }
}

/// Reads a switch of the environment.
fn variable_is_on(env: &Env, name: &str) -> bool {
    env.get(name).is_some_and(|value| !matches!(value.as_str(), "" | "0" | "false"))
}

/// Runs a session and returns the exit code. The error is a text for stderr.
fn start_run(
    args: &Args,
    caller: Caller,
    mut env: Env,
    compat: ExitCodeCompat,
    terminal: Terminal,
) -> Result<i32, String> {
    prepare_environment(args, caller, &mut env)?;
    let log = open_log(args)?;
    let session = PreparedSession::new(args.options.clone(), env).with_log(log);
    if let Some(prompt) = &args.rewind_files {
        return rewind_files(session, prompt.clone()).map(|page| print_text(&page));
    }
    if args.options.setup_hooks == Some(SetupHooks::InitOnly) {
        return Ok(report_exit(run_init_only(session), compat));
    }
    #[cfg(feature = "terminal")]
    if interactive::is_interactive(args, terminal) {
        return interactive::run(args, session, terminal)
            .map_err(|error| format!("The terminal cannot be used: {error}."));
    }
    if args.choose_session {
        return Err("--resume needs a value where no user can choose: --resume ID|TITLE.".into());
    }
    let input = resolve_input(args, &session, terminal)?;
    let terminal = if args.plain_output { terminal.without_styles() } else { terminal };
    Ok(report_exit(run_session(args, session, input, terminal), compat))
}

/// Returns whether a user at the terminal can have a conversation.
fn can_talk(terminal: Terminal) -> bool {
    cfg!(feature = "terminal") && terminal.stdin && terminal.stdout
}

/// Runs a subcommand, or says why there is none of this name; `None` if it is no subcommand. The caller does not matter:
/// a host that an SDK started may start this program and pass the SDK's variable on, and no SDK passes a subcommand.
fn run_subcommand(name: &str, argv: &[String], env: &Env, terminal: Terminal) -> Option<i32> {
    if let Some(text) = refuse_subcommand(name) {
        return Some(report_error(&text));
    }
    let env = env.clone();
    Some(match name {
        "acp" => acp::main(argv, env),
        "agents" => agents::main(argv, env),
        "auth" => auth::main(argv, env, terminal),
        "completions" => completions::main(argv),
        "config" => config::main(argv, env),
        "doctor" => doctor::main(argv, env),
        "info" => kimi::info(argv),
        "man" => man_page::main(argv),
        "mcp" => mcp::main(argv, env),
        "plugin" | "plugins" => plugin::main(argv, env),
        "sandbox" => sandbox::main(argv, &env),
        #[cfg(feature = "serve")]
        "serve" => serve::main(argv, env, terminal),
        #[cfg(not(feature = "serve"))]
        "serve" => report_error("This build has no `serve`: build it with the feature `serve`."),
        "sessions" => sessions::main(argv, env, terminal),
        _ => return None,
    })
}

/// Opens the debug log and prints its warning.
fn open_log(args: &Args) -> Result<Log, String> {
    let (log, warning) = debug_log::open_log(&args.options, args.debug_topics.as_deref())?;
    warning.iter().for_each(|warning| print_note(warning));
    Ok(log)
}

/// Input of a run.
enum RunInput {
    /// Frames on stdin.
    Frames,
    /// One prompt.
    Prompt(String),
}

/// Determines the input, or says why there is none.
fn resolve_input(args: &Args, session: &PreparedSession, terminal: Terminal) -> Result<RunInput, String> {
    if args.input_format == InputFormat::StreamJson {
        return Ok(RunInput::Frames);
    }
    let prompt = read_prompt(args.prompt.as_deref(), terminal)?;
    match args.output_format {
        OutputFormat::Text | OutputFormat::Json
            if !session.has_key_helper()
                && missing_key::lacks_key(session.model(), &session.request.env)
                && !args.options.extra_args.contains_key(REPLAY_FLAG) =>
        {
            Err(missing_key::NO_KEY_HELP.into())
        }
        _ => Ok(RunInput::Prompt(prompt)),
    }
}

fn run_session(
    args: &Args,
    session: PreparedSession,
    input: RunInput,
    terminal: Terminal,
) -> io::Result<RunOutcome> {
    match (input, args.output_format) {
        (RunInput::Prompt(prompt), OutputFormat::Text) => {
            let format = if terminal.stdout { PrintFormat::Live } else { PrintFormat::Answer };
            run_prompt(session, !args.print, prompt, format, terminal)
        }
        (RunInput::Prompt(prompt), OutputFormat::Json) => {
            run_prompt(session, !args.print, prompt, PrintFormat::Json, terminal)
        }
        (input @ RunInput::Prompt(_), OutputFormat::StreamJson) | (input @ RunInput::Frames, _) => {
            run_over_stdio(args.strict_input, session, input)
        }
    }
}

/// Serves a session over stdin and stdout, for a host that is a program.
fn run_over_stdio(strict_input: bool, session: PreparedSession, input: RunInput) -> io::Result<RunOutcome> {
    let (link, HostEnd { sender, receiver, stop, .. }) = pair();
    let shutdown = Shutdown::new(stop);
    watch_signals(shutdown.clone())?;
    stdio::watch_stdout(shutdown.clone())?;
    let writer = stdio::spawn_writer(receiver, shutdown.clone())?;
    match input {
        RunInput::Frames => {
            let on_malformed =
                if strict_input { MalformedLinePolicy::Exit } else { MalformedLinePolicy::Report };
            stdio::spawn_reader(sender, on_malformed, shutdown.clone())?;
        }
        RunInput::Prompt(prompt) => {
            // The channel is still empty, so there is room.
            let _ = sender.try_send(Ok(User::prompt(prompt).into()));
            drop(sender);
        }
    }
    let (session_exit, ()) = session.serve(link, |_| std::future::ready(()))?;
    // All frames are written before the program exits.
    let _ = writer.join();
    Ok(RunOutcome { session_exit, result: None, abort_reason: shutdown.reason() })
}

fn report_exit(ended: io::Result<RunOutcome>, compat: ExitCodeCompat) -> i32 {
    match ended {
        Ok(RunOutcome { session_exit, abort_reason, .. }) => {
            if let Some(error) = &session_exit.setup_error {
                print_note(&error.to_string());
            }
            exit_code(abort_reason, &session_exit, compat)
        }
        // The reader has closed the pipe on purpose: no message.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => FAILURE,
        Err(error) => {
            report_error(&format!("The program could not finish because of an I/O error: {error}."))
        }
    }
}

fn print_text(text: &str) -> i32 {
    match stdio::print(text) {
        Ok(()) => 0,
        Err(error) => report_error(&format!("The output could not be written: {error}.")),
    }
}

fn read_arguments() -> Result<Vec<String>, String> {
    let read = |argument: std::ffi::OsString| {
        argument
            .into_string()
            .map_err(|argument| format!("An argument is not UTF-8: {}.", argument.display()))
    };
    std::env::args_os().skip(1).map(read).collect()
}

fn to_utf8(bytes: std::ffi::OsString) -> Option<String> {
    bytes.into_string().ok()
}
