//! Reminder about the team of an earlier run of the session. Its members ended with that run; their files are still on
//! disk.

use std::path::Path;

use serde_json::Value;
use whimbrel_os::files;

use super::message::{TeamMessage, count_text};
use super::{LEAD, SessionTeam};

/// Limit on the team directories searched.
const MAX_TEAMS: usize = 1_000;

const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;

impl SessionTeam {
    /// The reminder for the lead of a resumed session, if an earlier run had a team.
    pub(crate) async fn previous_team_reminder(&self) -> Option<String> {
        let teams = self.shared.config_dir.as_ref()?.join("teams");
        let session = self.shared.session_id.clone();
        files::run_blocking(move || render_reminders(&teams, &session)).await.ok()?
    }
}

/// Renders the reminders of all teams that the session led. Blocking.
fn render_reminders(teams: &Path, session: &str) -> Option<String> {
    let mut names = files::entry_names(teams, MAX_TEAMS);
    names.sort();
    let reminders: Vec<String> =
        names.iter().filter_map(|name| render_reminder(&teams.join(name), session)).collect();
    (!reminders.is_empty())
        .then(|| format!("<system-reminder>\n{}\n</system-reminder>", reminders.join("\n")))
}

/// Renders the reminder of one team, if this session led it.
fn render_reminder(dir: &Path, session: &str) -> Option<String> {
    let config: Value = read_json(&dir.join("config.json"))?;
    if config["leadSessionId"] != session {
        return None;
    }
    let members = config["members"].as_array().into_iter().flatten();
    let names: Vec<&str> =
        members.filter_map(|member| member["name"].as_str()).filter(|name| *name != LEAD).collect();
    let unread = |name: &str| {
        let messages: Vec<TeamMessage> = read_json(&dir.join("inboxes").join(format!("{name}.json")))?;
        let unread = messages.iter().filter(|message| !message.read).count();
        (unread > 0).then(|| format!("{name} ({} not read)", count_text(unread)))
    };
    let teammates = match names.is_empty() {
        true => "It had no teammates left.".to_owned(),
        false => {
            let shown = names.iter().map(|name| unread(name).unwrap_or_else(|| (*name).to_owned()));
            format!(
                "Its teammates stopped, possibly before they finished: {}.",
                shown.collect::<Vec<_>>().join(", ")
            )
        }
    };
    Some(format!(
        "This session's team {} ended with the previous run. {teammates} Its messages are in {}. If you still need the team, create it again.",
        config["name"].as_str().unwrap_or("?"),
        dir.display()
    ))
}

/// Parses a JSON file; unreadable files are ignored.
fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Option<T> {
    let (bytes, _) = files::read(path, MAX_FILE_BYTES).ok()?;
    serde_json::from_slice(&bytes).ok()
}

#[cfg(test)]
mod tests {
    use whimbrel_tools::internal_events::event_channel;

    use super::super::MemberSpec;
    use super::*;

    fn teams(config: &Path, session: &str) -> SessionTeam {
        SessionTeam::new(event_channel().0, Some(config.into()), session.into(), None)
    }

    #[tokio::test]
    async fn reminder_lists_members_and_unread_messages() {
        let home = tempfile::tempdir().unwrap();
        let first = teams(home.path(), "s1");
        first.create("crew", "d").unwrap();
        let spec = |name: &str| MemberSpec { name: name.into(), ..MemberSpec::default() };
        // As if the process were killed.
        for name in ["ann", "bob"] {
            std::mem::forget(first.join(&spec(name), None).unwrap());
        }
        first.send("bob", TeamMessage::new(LEAD, "hello", None)).unwrap();
        first.flush().await;
        std::fs::create_dir(home.path().join("teams/other")).unwrap();
        std::fs::write(home.path().join("teams/other/config.json"), "{torn").unwrap();
        let reminders = teams(home.path(), "s1").previous_team_reminder().await.unwrap();
        for part in ["team crew", "ann, bob (1 message not read)", "teams/crew"] {
            assert!(reminders.contains(part), "{part}: {reminders}");
        }
        assert_eq!(teams(home.path(), "s2").previous_team_reminder().await, None, "another session's team");
        assert_eq!(
            SessionTeam::new(event_channel().0, None, "s1".into(), None).previous_team_reminder().await,
            None
        );
    }
}
