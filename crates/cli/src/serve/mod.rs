//! `whimbrel serve`: sessions in the browser. The host itself is the crate `whimbrel-host`.
//!
//! Modules: [`command`], the command line.

mod command;

use std::path::{Path, PathBuf};

use whimbrel::{Agent, Environment};
use whimbrel_host::{ConfigFile, HostConfig, Limits, ServeError};

use crate::environment::{Env, resolve_home};
use crate::stdio::{self, print_note, report_error};
use crate::terminal::Terminal;
use command::{ServeArgs, ServeCommand};

/// Exit code of wrong flags.
const USAGE_ERROR: i32 = 2;

/// Help page of `whimbrel serve`.
pub(crate) fn help_page() -> &'static str {
    command::HELP_PAGE
}

/// Runs the host or one of its commands, and returns the exit code.
pub(crate) fn main(argv: &[String], mut env: Env, _terminal: Terminal) -> i32 {
    let command = match command::parse(argv) {
        Ok(command) => command,
        Err(text) => {
            report_error(&text);
            return USAGE_ERROR;
        }
    };
    resolve_home(&mut env);
    let done = match command {
        ServeCommand::Help => print(help_page()),
        ServeCommand::Login { data } => run(async {
            let data = data_folder(data, &env)?;
            let link = whimbrel_host::new_login_link(&data, &Limits::default()).await;
            print(&format!("{}\n", link.map_err(ServeError::Other)?))
        }),
        ServeCommand::Key { name, data } => run(async {
            let data = data_folder(data, &env)?;
            let key = whimbrel_host::new_bearer_key(&data, &name).await;
            print(&format!("{}\n", key.map_err(ServeError::Other)?))
        }),
        ServeCommand::Serve(arguments) => {
            // This process runs engines: no process that a command leaves behind may outlive it.
            whimbrel_process::track_daemons();
            match to_config(*arguments, env) {
                Ok(config) => run(whimbrel_host::serve(config, |line| {
                    // Without a reader of the line the host still serves.
                    let _ = stdio::print(line);
                })),
                Err(text) => {
                    report_error(&text);
                    return USAGE_ERROR;
                }
            }
        }
    };
    match done {
        Ok(()) => 0,
        Err(error) => {
            report_error(&error.to_string());
            error.exit_code()
        }
    }
}

fn print(text: &str) -> Result<(), ServeError> {
    stdio::print(text).map_err(|error| ServeError::Other(format!("cannot write the output: {error}")))
}

fn run(work: impl Future<Output = Result<(), ServeError>>) -> Result<(), ServeError> {
    // Sessions are many and small: two threads keep them apart from the database and the sockets.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| ServeError::Other(error.to_string()))?;
    let done = runtime.block_on(work);
    // Work on other threads must not delay the exit.
    runtime.shutdown_background();
    done
}

/// Folder of the database: as given, or below the user's data folder.
fn data_folder(given: Option<PathBuf>, env: &Env) -> Result<PathBuf, ServeError> {
    if let Some(given) = given {
        return std::path::absolute(&given).map_err(|error| ServeError::Data(error.to_string()));
    }
    let absolute = |name: &str| env.get(name).map(PathBuf::from).filter(|path: &PathBuf| path.is_absolute());
    let base = absolute("XDG_DATA_HOME").or_else(|| Some(absolute("HOME")?.join(".local/share")));
    let base = base.ok_or_else(|| ServeError::Data("HOME is not set: name a folder with --data".into()))?;
    Ok(base.join("whimbrel/host"))
}

fn to_config(arguments: ServeArgs, mut env: Env) -> Result<HostConfig, String> {
    for warning in &arguments.session.warnings {
        print_note(warning);
    }
    let file = match &arguments.config {
        Some(path) => ConfigFile::read(path)?,
        None => ConfigFile::default(),
    };
    let limits = file.limits.unwrap_or_default();
    let roots = [arguments.roots, file.roots].into_iter().find(|roots| !roots.is_empty());
    let roots = roots.unwrap_or_else(|| vec![PathBuf::from(".")]);
    let roots = roots.iter().map(|root| resolve_root(root)).collect::<Result<Vec<_>, _>>()?;
    if !arguments.listen.ip().is_loopback() && arguments.public_url.is_none() {
        return Err(format!(
            "--listen {} is reachable from other machines: name the URL under which it is reached with --public-url",
            arguments.listen
        ));
    }
    let data = data_folder(arguments.data, &env).map_err(|error| error.to_string())?;
    // The host reads when turns begin and end.
    env.insert("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS".into(), "1".into());
    let environment: Environment = env.into_iter().collect();
    let engine = environment.engine();
    let options = arguments.session.args.options;
    let agent = Agent::new().with(|defaults| {
        *defaults = options;
        defaults.replay_user_messages = true;
        defaults.enable_file_checkpointing = true;
    });
    Ok(HostConfig {
        listen: arguments.listen,
        data,
        roots,
        public_url: arguments.public_url,
        token_file: arguments.token_file,
        drain: arguments.drain.unwrap_or(std::time::Duration::from_secs(limits.drain_s)),
        json: arguments.json,
        page: arguments.page,
        agent: agent.environment(environment).engine(engine),
        limits,
    })
}

fn resolve_root(root: &Path) -> Result<PathBuf, String> {
    let resolved = std::fs::canonicalize(root)
        .map_err(|error| format!("--root {}: {error}. Name a folder that exists", root.display()))?;
    if resolved.is_dir() {
        return Ok(resolved);
    }
    Err(format!("--root {} is not a folder", root.display()))
}
