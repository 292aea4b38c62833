//! Environment of a run: its variables, the home directory, and the directories that the arguments name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use nix::unistd::{Uid, User};
use whimbrel_config::settings::home_dir;

use crate::caller::Caller;
use crate::flags::{Args, check_directories};
use crate::stdio::print_note;

/// Environment variables of the program.
pub(crate) type Env = BTreeMap<String, String>;

/// Resolves the home directory, checks the directories that the arguments name, and prints warnings.
pub(crate) fn prepare_environment(args: &Args, caller: Caller, env: &mut Env) -> Result<(), String> {
    let home_warning = resolve_home(env).filter(|_| args.options.persist_session != Some(false));
    let home = home_dir(env.get("HOME").map(String::as_str));
    let is_dir = |name: &str| match (name.strip_prefix("~/"), &home) {
        (Some(rest), Some(home)) => home.join(rest).is_dir(),
        _ => Path::new(name).is_dir(),
    };
    let dir_warnings = check_directories(&args.options.additional_directories, caller, is_dir)?;
    dir_warnings.iter().map(String::as_str).chain(home_warning).for_each(print_note);
    Ok(())
}

/// Sets `HOME` from the user database if it is unusable. Returns a warning if there is no home at all.
pub(crate) fn resolve_home(env: &mut Env) -> Option<&'static str> {
    if home_dir(env.get("HOME").map(String::as_str)).is_some() {
        return None;
    }
    let user_home = User::from_uid(Uid::current()).ok().flatten().map(|user| user.dir);
    match to_utf8_path(user_home) {
        Some(home) => {
            env.insert("HOME".into(), home);
            None
        }
        // The engine itself warns about an unusable home.
        None if env.contains_key("HOME") || env.contains_key("CLAUDE_CONFIG_DIR") => None,
        None => Some(
            "This session is not stored: HOME is not set, and the user database has no home directory. Set HOME or \
                CLAUDE_CONFIG_DIR.",
        ),
    }
}

fn to_utf8_path(dir: Option<PathBuf>) -> Option<String> {
    let dir = dir.filter(|dir| dir.is_absolute())?;
    dir.into_os_string().into_string().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unusable_home_is_replaced() {
        let user_home = User::from_uid(Uid::current()).unwrap().map(|user| user.dir.display().to_string());
        for given in [None, Some(""), Some("some/where"), Some("~")] {
            let mut env: Env = given.map(|home| ("HOME".to_owned(), home.to_owned())).into_iter().collect();
            resolve_home(&mut env);
            let expected = user_home.clone().or_else(|| given.map(str::to_owned));
            assert_eq!(env.get("HOME"), expected.as_ref(), "{given:?}");
        }
        let mut env = Env::from([("HOME".to_owned(), "/no/such/home".to_owned())]);
        assert_eq!(resolve_home(&mut env), None);
        assert_eq!(env["HOME"], "/no/such/home");
    }
}
