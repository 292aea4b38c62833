//! The program from start to end.

use std::io;
use std::path::Path;

use whimbrel_engine::link::{HostEnd, pair};
use whimbrel_engine::settings::home_folder;
use whimbrel_engine::{Farewell, Start};
use whimbrel_models::log::Log;
use whimbrel_wire::message::{TurnResult, User};

use crate::exit::{self, Cut, Host, Why};
use crate::flags::{self, Args, Caller, Command, InputFormat, OutputFormat, Parsed};
use crate::print::{Shown, print};
use crate::session::{Env, REPLAY, Session};
use crate::stdio::{OnMalformed, note};
use crate::terminal::{self, Terminal};
use crate::{debug, demo, explain, home, mcp, prompt, sessions, signals, stdio, welcome};

/// How a run ended.
pub(crate) struct Ended {
    /// What the engine says.
    pub(crate) farewell: Farewell,
    /// The last result, where it was not passed on.
    pub(crate) result: Option<Box<TurnResult>>,
    /// What cut it short.
    pub(crate) why: Option<Why>,
}

/// Runs the program and gives its exit code.
pub(crate) fn main() -> i32 {
    let mut env: Env =
        std::env::vars_os().filter_map(|(name, value)| Some((text(name)?, text(value)?))).collect();
    let variable = |name: &str| env.get(name).map(String::as_str);
    let entrypoint = variable("CLAUDE_CODE_ENTRYPOINT");
    let host = Host::from_env(entrypoint, variable("CLAUDE_AGENT_SDK_VERSION"));
    let caller = Caller::from_entrypoint(entrypoint);
    let terminal = Terminal::look(&env);
    let argv = arguments();
    if let (Ok([command, rest @ ..]), Caller::Person) = (argv.as_deref(), caller)
        && command == "sessions"
    {
        return sessions::main(rest, env, terminal);
    }
    // A host that starts us may pass on that it was started by an SDK; no SDK begins with a word of its own.
    if let Ok([command, rest @ ..]) = argv.as_deref()
        && command == "mcp"
    {
        return mcp::main(rest, env);
    }
    let parsed = argv.and_then(|argv| {
        if argv.is_empty() && terminal.stdin {
            return Ok(None);
        }
        flags::parse(&argv, caller, &|path| std::fs::read_to_string(path)).map(Some)
    });
    let Parsed { args, warnings } = match parsed {
        Ok(Some(parsed)) => parsed,
        Ok(None) => return say(flags::usage()),
        Err(text) => return fail(&text),
    };
    warnings.iter().for_each(|warning| note(warning));
    if matches!(args.command, Command::Run | Command::Demo) {
        // This program is the engine's: nothing that a command leaves behind shall outlive it.
        whimbrel_engine::tasks::follow_daemons();
    }
    match args.command {
        Command::Help => say(&flags::help(terminal::width())),
        Command::Version => say(&flags::version()),
        Command::Demo => code(demo::demo(env, terminal), host),
        Command::Explain => {
            let Some(call) = args.prompt else {
                return fail("Say what to explain: whimbrel permissions explain 'Bash(git push)'.");
            };
            home::settle(&mut env);
            let as_json = args.output_format == OutputFormat::Json;
            match explain::run(Start::new(args.options, env), &call, as_json) {
                Ok(()) => 0,
                Err(text) => fail(&text),
            }
        }
        Command::Run => match check(&args, caller, &mut env).and_then(|()| followed(&args)) {
            Ok(log) => {
                let session = Session::new(args.options.clone(), env).followed_by(log);
                match input(&args, &session, terminal) {
                    Ok(input) => code(run(&args, session, input, terminal), host),
                    Err(text) => fail(&text),
                }
            }
            Err(text) => fail(&text),
        },
    }
}

/// Looks at what the command line and the environment name: folders.
pub(crate) fn check(args: &Args, caller: Caller, env: &mut Env) -> Result<(), String> {
    let homeless = home::settle(env).filter(|_| args.options.persist_session != Some(false));
    let home = home_folder(env.get("HOME").map(String::as_str));
    let is_folder = |name: &str| match (name.strip_prefix("~/"), &home) {
        (Some(rest), Some(home)) => home.join(rest).is_dir(),
        _ => Path::new(name).is_dir(),
    };
    let strange = flags::folders(&args.options.additional_directories, caller, is_folder)?;
    strange.iter().map(String::as_str).chain(homeless).for_each(note);
    Ok(())
}

/// Who hears what is done.
fn followed(args: &Args) -> Result<Log, String> {
    let (log, warning) = debug::log(&args.options, args.debug_topics.as_deref())?;
    warning.iter().for_each(|warning| note(warning));
    Ok(log)
}

/// What a run is fed with.
enum Input {
    /// Frames on stdin.
    Frames,
    /// One prompt.
    Prompt(String),
}

/// Where the input comes from, or why there is none.
fn input(args: &Args, session: &Session, terminal: Terminal) -> Result<Input, String> {
    if args.input_format == InputFormat::StreamJson {
        return Ok(Input::Frames);
    }
    let prompt = prompt::gather(args.prompt.as_deref(), terminal)?;
    match args.output_format {
        OutputFormat::Text | OutputFormat::Json
            if !session.has_key_helper()
                && welcome::lacks_key(session.model(), &session.start.env)
                && !args.options.extra_args.contains_key(REPLAY) =>
        {
            Err(welcome::NO_KEY.into())
        }
        _ => Ok(Input::Prompt(prompt)),
    }
}

fn run(args: &Args, session: Session, input: Input, terminal: Terminal) -> io::Result<Ended> {
    match (input, args.output_format) {
        (Input::Prompt(prompt), OutputFormat::Text) => {
            let shown = if terminal.stdout { Shown::Story } else { Shown::Answer };
            print(session, !args.print, prompt, shown, terminal)
        }
        (Input::Prompt(prompt), OutputFormat::Json) => {
            print(session, !args.print, prompt, Shown::Json, terminal)
        }
        (input @ Input::Prompt(_), OutputFormat::StreamJson) | (input @ Input::Frames, _) => {
            over_stdio(args.strict_input, session, input)
        }
    }
}

/// Frames on stdout, for a host that is a program.
fn over_stdio(strict_input: bool, session: Session, input: Input) -> io::Result<Ended> {
    let (link, HostEnd { sender, receiver, stop, .. }) = pair();
    let cut = Cut::new(stop);
    signals::watch(cut.clone())?;
    stdio::watch_reader(cut.clone())?;
    let writer = stdio::write(receiver, cut.clone())?;
    match input {
        Input::Frames => {
            let on_malformed = if strict_input { OnMalformed::Leave } else { OnMalformed::Report };
            stdio::read(sender, on_malformed, cut.clone())?;
        }
        Input::Prompt(prompt) => {
            // The queue is empty yet, so there is room.
            let _ = sender.try_send(Ok(User::prompt(prompt).into()));
            drop(sender);
        }
    }
    let (farewell, ()) = session.serve(link, |_| std::future::ready(()))?;
    // Everything that was said is written before we leave.
    let _ = writer.join();
    Ok(Ended { farewell, result: None, why: cut.why() })
}

fn code(ended: io::Result<Ended>, host: Host) -> i32 {
    match ended {
        Ok(Ended { farewell, why, .. }) => {
            if let Some(error) = &farewell.not_started {
                note(&error.to_string());
            }
            exit::code(why, &farewell, host)
        }
        // Whoever has closed the pipe does not want to hear of it.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => exit::FAILED,
        Err(error) => fail(&format!("The machine did not let us finish: {error}.")),
    }
}

fn say(text: &str) -> i32 {
    match stdio::print(text) {
        Ok(()) => 0,
        Err(error) => fail(&format!("The output could not be written: {error}.")),
    }
}

fn fail(text: &str) -> i32 {
    note(text);
    exit::FAILED
}

fn arguments() -> Result<Vec<String>, String> {
    let read = |argument: std::ffi::OsString| {
        argument
            .into_string()
            .map_err(|argument| format!("An argument is not UTF-8: {}.", argument.display()))
    };
    std::env::args_os().skip(1).map(read).collect()
}

fn text(bytes: std::ffi::OsString) -> Option<String> {
    bytes.into_string().ok()
}
