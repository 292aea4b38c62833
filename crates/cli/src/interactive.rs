//! The interactive terminal: `whimbrel` and `whimbrel "prompt"` where a user reads and types.

use std::io;
use std::path::PathBuf;

use whimbrel::{Agent, Environment};
use whimbrel_config::key_variables::HiddenVariables;
use whimbrel_engine::SessionRequest;
use whimbrel_engine::setup::config_dir;
use whimbrel_terminal::{StartSession, TerminalOutput, TerminalRequest};

use crate::flags::{Args, InputFormat, OutputFormat, REPLAY_FLAG};
use crate::missing_key;
use crate::serve_session::PreparedSession;
use crate::terminal::Terminal;

/// Returns whether this run is a conversation with a user at a terminal.
pub(crate) fn is_interactive(args: &Args, terminal: Terminal) -> bool {
    !args.print
        && args.input_format == InputFormat::Text
        && args.output_format == OutputFormat::Text
        && terminal.stdin
        && terminal.stdout
}

/// Talks with the user until they leave; returns the exit code.
pub(crate) fn run(args: &Args, session: PreparedSession, terminal: Terminal) -> io::Result<i32> {
    let lacks_key = !session.has_key_helper()
        && missing_key::lacks_key(session.model(), &session.request.env)
        && !args.options.extra_args.contains_key(REPLAY_FLAG);
    let start = if args.choose_session { StartSession::Choose } else { StartSession::AsConfigured };
    let request = TerminalRequest {
        prompt: args.prompt.clone(),
        session: start,
        lacks_model: lacks_key,
        output: output(args.plain_output, terminal),
        ..terminal_request(session)?
    };
    whimbrel_terminal::run(request)
}

/// How the terminal can be used.
pub(crate) fn output(is_plain: bool, terminal: Terminal) -> TerminalOutput {
    if is_plain || !terminal.can_move_cursor { TerminalOutput::Plain } else { TerminalOutput::Screen }
}

/// The request for a prepared session.
pub(crate) fn terminal_request(session: PreparedSession) -> io::Result<TerminalRequest> {
    let model = session.effective_model();
    let PreparedSession { engine, request } = session;
    let cwd = match &request.options.cwd {
        Some(dir) => PathBuf::from(dir),
        None => std::env::current_dir()?,
    };
    let environment: Environment = request.env.clone().into_iter().collect();
    let program_environment = program_environment(&request);
    let config_dir = config_dir(&request.env);
    let options = request.options;
    let agent = Agent::new().with(|all| *all = options).environment(environment.clone()).engine(engine);
    Ok(TerminalRequest {
        agent,
        environment,
        program_environment,
        config_dir,
        cwd,
        version: env!("CARGO_PKG_VERSION").into(),
        model,
        prompt: None,
        session: StartSession::AsConfigured,
        lacks_model: false,
        output: TerminalOutput::Screen,
        introduction: Vec::new(),
    })
}

/// The environment of programs of the user: that of commands of the model.
fn program_environment(request: &SessionRequest) -> Environment {
    let mut env = request.env.clone();
    env.extend(request.options.env.clone());
    let settings = request.settings.as_ref().map(|settings| settings.effective().typed.pass_env.clone());
    HiddenVariables::new(&settings.unwrap_or_default(), &env).remove_from(&mut env);
    env.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use whimbrel_config::settings::{Settings, SettingsRequest};
    use whimbrel_wire::options::Options;

    use super::*;

    #[test]
    fn programs_of_the_user_get_no_keys() {
        let env = [("PATH", "/bin"), ("ANTHROPIC_API_KEY", "a"), ("OPENAI_API_KEY", "o")];
        let env = env.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let mut request = SessionRequest::new(Options::default(), env);
        let names = |request: &SessionRequest| {
            program_environment(request).iter().map(|(name, _)| name.to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(names(&request), ["PATH"]);
        let flag = Some(r#"{"passEnv": ["OPENAI_API_KEY"]}"#.to_owned());
        let settings = Settings::load(SettingsRequest { flag, ..SettingsRequest::default() });
        request.settings = Some(settings.unwrap());
        assert_eq!(names(&request), ["OPENAI_API_KEY", "PATH"]);
    }
}
