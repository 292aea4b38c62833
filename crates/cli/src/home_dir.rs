//! Home directory: from the environment or, if that is unusable, from the user database.

use std::path::PathBuf;

use nix::unistd::{Uid, User};
use whimbrel_config::settings::home_dir;

use crate::session::Env;

/// Sets `HOME` from the user database if it is unusable. Returns a warning if there is no home at all.
pub(crate) fn resolve_home(env: &mut Env) -> Option<&'static str> {
    if home_dir(env.get("HOME").map(String::as_str)).is_some() {
        return None;
    }
    let known = User::from_uid(Uid::current()).ok().flatten().map(|user| user.dir);
    match to_utf8_path(known) {
        Some(home) => {
            env.insert("HOME".into(), home);
            None
        }
        // The engine itself warns about an unusable home.
        None if env.contains_key("HOME") || env.contains_key("CLAUDE_CONFIG_DIR") => None,
        None => Some(
            "Nothing of this session is kept on disk: HOME is not set, and the system knows no home of this user. Set HOME or CLAUDE_CONFIG_DIR.",
        ),
    }
}

fn to_utf8_path(folder: Option<PathBuf>) -> Option<String> {
    let folder = folder.filter(|folder| folder.is_absolute())?;
    folder.into_os_string().into_string().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unusable_home_is_replaced() {
        let known = User::from_uid(Uid::current()).unwrap().map(|user| user.dir.display().to_string());
        for given in [None, Some(""), Some("some/where"), Some("~")] {
            let mut env: Env = given.map(|home| ("HOME".to_owned(), home.to_owned())).into_iter().collect();
            resolve_home(&mut env);
            let expected = known.clone().or_else(|| given.map(str::to_owned));
            assert_eq!(env.get("HOME"), expected.as_ref(), "{given:?}");
        }
        let mut env = Env::from([("HOME".to_owned(), "/no/such/home".to_owned())]);
        assert_eq!(resolve_home(&mut env), None);
        assert_eq!(env["HOME"], "/no/such/home");
    }
}
