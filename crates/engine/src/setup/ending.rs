//! What options and the environment say about background work: how much of it there may be, and what becomes of it at
//! the end.

use std::collections::BTreeMap;
use std::time::Duration;

use whimbrel_wire::options::{BackgroundAtEnd, Options};

use super::SetupError;
use crate::agents::places::AT_ONCE_VARIABLE;
use crate::agents::team::LETTERS_VARIABLE;
use crate::life::{self, AtEnd};

type Env = BTreeMap<String, String>;

/// How long background work is waited for, in milliseconds; 0 means as long as it takes.
const CEILING_VARIABLE: &str = "CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS";

/// What becomes of background work when nothing else is due: `wait`, `stop`, `detach`, or as is customary. An option says
/// the same and counts first.
const AT_END_VARIABLE: &str = "WHIMBREL_BACKGROUND_AT_END";

/// What becomes of background work at the end.
pub(super) fn at_end(options: &Options, env: &Env) -> Result<AtEnd, SetupError> {
    let wanted = match (options.background_at_end, env.get(AT_END_VARIABLE).map(|text| text.trim())) {
        (Some(wanted), _) => wanted,
        (None, None | Some("")) => return Ok(AtEnd::Customary),
        (None, Some(text)) => text.parse().map_err(|_| {
            SetupError::Invalid(format!(
                "{AT_END_VARIABLE} must be \"wait\", \"stop\" or \"detach\", but is {text:?}."
            ))
        })?,
    };
    Ok(match wanted {
        BackgroundAtEnd::Wait => AtEnd::Wait,
        BackgroundAtEnd::Stop => AtEnd::Stop,
        BackgroundAtEnd::Detach => AtEnd::Detach,
    })
}

/// How long background work is waited for; none means as long as it takes.
pub(super) fn ceiling(env: &Env) -> Result<Option<Duration>, SetupError> {
    Ok(match number(env, CEILING_VARIABLE)? {
        None => Some(life::CEILING),
        Some(0) => None,
        Some(milliseconds) => Some(Duration::from_millis(milliseconds)),
    })
}

/// How many agents may work at once, if it is said.
pub(super) fn agents_at_once(env: &Env) -> Result<Option<usize>, SetupError> {
    match number(env, AT_ONCE_VARIABLE)? {
        Some(0) => Err(SetupError::Invalid(format!("{AT_ONCE_VARIABLE} must be at least 1."))),
        other => Ok(other.map(|number| usize::try_from(number).unwrap_or(usize::MAX))),
    }
}

/// How many letters a team may write, if it is said.
pub(super) fn team_letters(env: &Env) -> Result<Option<usize>, SetupError> {
    Ok(number(env, LETTERS_VARIABLE)?.map(|number| usize::try_from(number).unwrap_or(usize::MAX)))
}

fn number(env: &Env, name: &str) -> Result<Option<u64>, SetupError> {
    let text = env.get(name).map(|text| text.trim()).filter(|text| !text.is_empty());
    let wrong = |_| SetupError::Invalid(format!("{name} must be a whole number."));
    text.map(|text| text.parse().map_err(wrong)).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(name: &str, value: &str) -> Env {
        [(name.to_owned(), value.to_owned())].into()
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_its_name() {
        let wrong = [
            at_end(&Options::default(), &env(AT_END_VARIABLE, "maybe")).unwrap_err(),
            ceiling(&env(CEILING_VARIABLE, "soon")).unwrap_err(),
            agents_at_once(&env(AT_ONCE_VARIABLE, "0")).unwrap_err(),
        ];
        let names = [AT_END_VARIABLE, CEILING_VARIABLE, AT_ONCE_VARIABLE];
        for (error, name) in wrong.iter().zip(names) {
            assert!(error.to_string().contains(name), "{error}");
        }
    }

    #[test]
    fn what_is_said_counts() {
        let option = Options { background_at_end: Some(BackgroundAtEnd::Wait), ..Options::default() };
        for (options, variable, expected) in [
            (&Options::default(), "", AtEnd::Customary),
            (&Options::default(), "stop", AtEnd::Stop),
            (&Options::default(), "detach", AtEnd::Detach),
            (&option, "stop", AtEnd::Wait),
        ] {
            assert_eq!(at_end(options, &env(AT_END_VARIABLE, variable)).unwrap(), expected, "{variable}");
        }
        assert_eq!(ceiling(&env(CEILING_VARIABLE, "0")).unwrap(), None);
        assert_eq!(ceiling(&env(CEILING_VARIABLE, "1500")).unwrap(), Some(Duration::from_millis(1500)));
        assert_eq!(ceiling(&Env::new()).unwrap(), Some(life::CEILING));
        assert_eq!(agents_at_once(&env(AT_ONCE_VARIABLE, "3")).unwrap(), Some(3));
    }
}
