//! What became of the team that an earlier run of a session has left on disk. Its members lived in that run, so they are
//! gone; what they wrote is still there.

use std::path::Path;

use serde_json::Value;

use super::letter::{Letter, counted};
use super::{LEAD, Teams};
use crate::files;

/// How many teams are looked at.
const MOST: usize = 1_000;

/// How large a file may be that is read.
const LARGEST: u64 = 16 * 1024 * 1024;

impl Teams {
    /// What the lead of an earlier run should know, if that run had a team.
    pub(crate) async fn left_behind(&self) -> Option<String> {
        let teams = self.shared.config.as_ref()?.join("teams");
        let session = self.shared.session.clone();
        files::aside(move || stories(&teams, &session)).await.ok()?
    }
}

/// The stories of the teams that a session led. Touches the disk.
fn stories(teams: &Path, session: &str) -> Option<String> {
    let mut names = files::names(teams, MOST);
    names.sort();
    let told: Vec<String> = names.iter().filter_map(|name| story(&teams.join(name), session)).collect();
    (!told.is_empty()).then(|| format!("<system-reminder>\n{}\n</system-reminder>", told.join("\n")))
}

/// The story of a team, if this session led it.
fn story(folder: &Path, session: &str) -> Option<String> {
    let config: Value = read(&folder.join("config.json"))?;
    if config["leadSessionId"] != session {
        return None;
    }
    let members = config["members"].as_array().into_iter().flatten();
    let names: Vec<&str> =
        members.filter_map(|member| member["name"].as_str()).filter(|name| *name != LEAD).collect();
    let unread = |name: &str| {
        let letters: Vec<Letter> = read(&folder.join("inboxes").join(format!("{name}.json")))?;
        let unread = letters.iter().filter(|letter| !letter.read).count();
        (unread > 0).then(|| format!("{name} ({} not read)", counted(unread)))
    };
    let who = match names.is_empty() {
        true => "Nobody was left in it.".to_owned(),
        false => {
            let told = names.iter().map(|name| unread(name).unwrap_or_else(|| (*name).to_owned()));
            format!(
                "Gone with it, perhaps in the middle of their work: {}.",
                told.collect::<Vec<_>>().join(", ")
            )
        }
    };
    Some(format!(
        "The team {} of this session ended with the run that founded it. {who} What was written is in {}. If you need the team again, found it anew.",
        config["name"].as_str().unwrap_or("?"),
        folder.display()
    ))
}

/// A file as a value; what cannot be read was not left for us.
fn read<T: serde::de::DeserializeOwned>(path: &Path) -> Option<T> {
    let (bytes, _) = files::read(path, LARGEST).ok()?;
    serde_json::from_slice(&bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::super::MemberFacts;
    use super::*;
    use crate::inbox::inbox;

    fn teams(config: &Path, session: &str) -> Teams {
        Teams::new(inbox().0, Some(config.into()), session.into(), None)
    }

    #[tokio::test]
    async fn a_later_run_is_told_who_was_there_and_what_was_not_read() {
        let home = tempfile::tempdir().unwrap();
        let first = teams(home.path(), "s1");
        first.create("crew", "d").unwrap();
        let facts = |name: &str| MemberFacts { name: name.into(), ..MemberFacts::default() };
        // As if the process were killed.
        for name in ["ann", "bob"] {
            std::mem::forget(first.join(&facts(name), None).unwrap());
        }
        first.send("bob", Letter::new(LEAD, "hello", None)).unwrap();
        first.settle().await;
        std::fs::create_dir(home.path().join("teams/other")).unwrap();
        std::fs::write(home.path().join("teams/other/config.json"), "{torn").unwrap();
        let told = teams(home.path(), "s1").left_behind().await.unwrap();
        for part in ["The team crew", "ann, bob (1 letter not read)", "teams/crew"] {
            assert!(told.contains(part), "{part}: {told}");
        }
        assert_eq!(teams(home.path(), "s2").left_behind().await, None, "another session's team");
        assert_eq!(Teams::new(inbox().0, None, "s1".into(), None).left_behind().await, None);
    }
}
