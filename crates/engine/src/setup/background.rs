//! Options and environment variables for background tasks: what happens to them when the session ends.

use std::time::Duration;

use whimbrel_tools::tasks::BackgroundPolicy;
use whimbrel_wire::options::{BackgroundAtEnd, Options};

use super::SetupError;
use super::env::{Env, parse_number};
use super::setup_types::NotificationTurns;
use crate::session_lifetime;

/// Time limit for waiting for background tasks in milliseconds; 0 for none.
const WAIT_LIMIT_VARIABLE: &str = "CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS";

/// Policy for background tasks at the end: `wait`, `stop`, `detach`, or the default of the official engine. The option
/// of the same meaning has precedence.
const AT_END_VARIABLE: &str = "WHIMBREL_BACKGROUND_AT_END";

/// Switch: with `0`, notifications about background tasks wait for the next prompt.
const NOTIFICATION_TURNS_VARIABLE: &str = "WHIMBREL_NOTIFICATION_TURNS";

pub(super) fn notification_turns(env: &Env) -> NotificationTurns {
    match env.get(NOTIFICATION_TURNS_VARIABLE).map(|text| text.trim()) {
        Some("0" | "false" | "no" | "off") => NotificationTurns::Deferred,
        _ => NotificationTurns::Started,
    }
}

pub(super) fn background_policy(options: &Options, env: &Env) -> Result<BackgroundPolicy, SetupError> {
    let at_end = match (options.background_at_end, env.get(AT_END_VARIABLE).map(|text| text.trim())) {
        (Some(at_end), _) => at_end,
        (None, None | Some("")) => return Ok(BackgroundPolicy::WaitForAgents),
        (None, Some(text)) => text.parse().map_err(|_| {
            SetupError::Invalid(format!(
                "{AT_END_VARIABLE} must be \"wait\", \"stop\" or \"detach\", but is {text:?}."
            ))
        })?,
    };
    Ok(match at_end {
        BackgroundAtEnd::Wait => BackgroundPolicy::WaitForAll,
        BackgroundAtEnd::Stop => BackgroundPolicy::Stop,
        BackgroundAtEnd::Detach => BackgroundPolicy::Detach,
    })
}

/// Time limit for waiting for background tasks; `None` for no limit.
pub(super) fn wait_limit(env: &Env) -> Result<Option<Duration>, SetupError> {
    Ok(match parse_number(env, WAIT_LIMIT_VARIABLE)? {
        None => Some(session_lifetime::BACKGROUND_WAIT_LIMIT),
        Some(0) => None,
        Some(milliseconds) => Some(Duration::from_millis(milliseconds)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(name: &str, value: &str) -> Env {
        [(name.to_owned(), value.to_owned())].into()
    }

    #[test]
    fn invalid_values_name_their_variable() {
        let errors = [
            background_policy(&Options::default(), &env(AT_END_VARIABLE, "maybe")).unwrap_err(),
            wait_limit(&env(WAIT_LIMIT_VARIABLE, "soon")).unwrap_err(),
        ];
        let names = [AT_END_VARIABLE, WAIT_LIMIT_VARIABLE];
        for (error, name) in errors.iter().zip(names) {
            assert!(error.to_string().contains(name), "{error}");
        }
    }

    #[test]
    fn options_precede_variables() {
        let option = Options { background_at_end: Some(BackgroundAtEnd::Wait), ..Options::default() };
        for (options, variable, expected) in [
            (&Options::default(), "", BackgroundPolicy::WaitForAgents),
            (&Options::default(), "stop", BackgroundPolicy::Stop),
            (&Options::default(), "detach", BackgroundPolicy::Detach),
            (&option, "stop", BackgroundPolicy::WaitForAll),
        ] {
            assert_eq!(
                background_policy(options, &env(AT_END_VARIABLE, variable)).unwrap(),
                expected,
                "{variable}"
            );
        }
        assert_eq!(wait_limit(&env(WAIT_LIMIT_VARIABLE, "0")).unwrap(), None);
        assert_eq!(wait_limit(&env(WAIT_LIMIT_VARIABLE, "1500")).unwrap(), Some(Duration::from_millis(1500)));
        assert_eq!(wait_limit(&Env::new()).unwrap(), Some(session_lifetime::BACKGROUND_WAIT_LIMIT));
    }
}
