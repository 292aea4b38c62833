//! Stored sessions as pages of a list. Pure.

use std::cmp::Reverse;
use std::path::Path;

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{ListSessionsResponse, SessionInfo};
use jiff::Timestamp;
use whimbrel::store::SessionSummary;

use crate::errors::invalid_params;

const PAGE_SIZE: usize = 50;
const MAX_TITLE_CHARS: usize = 100;

/// A page of the sessions, newest first: those behind the cursor, and only those of a working directory if one is given.
pub(crate) fn page(
    sessions: Vec<SessionSummary>,
    cwd: Option<&Path>,
    cursor: Option<&str>,
) -> Result<ListSessionsResponse, Error> {
    let after = cursor.map(parse_cursor).transpose()?;
    let mut sessions: Vec<SessionSummary> = sessions
        .into_iter()
        .filter(|session| match (cwd, session.cwd.as_deref()) {
            (Some(cwd), Some(of_session)) => Path::new(of_session) == cwd,
            (_, of_session) => of_session.is_some(),
        })
        .collect();
    sessions.sort_by_cached_key(position);
    let rest =
        sessions.iter().filter(|session| after.as_ref().is_none_or(|after| position(session) > *after));
    let mut page: Vec<&SessionSummary> = rest.take(PAGE_SIZE + 1).collect();
    let has_more = page.len() > PAGE_SIZE;
    page.truncate(PAGE_SIZE);
    let next = page.last().filter(|_| has_more).map(|last| to_cursor(last));
    Ok(ListSessionsResponse::new(page.into_iter().map(to_info).collect()).next_cursor(next))
}

/// The title that a session is listed with.
pub(crate) fn title(session: &SessionSummary) -> Option<String> {
    let text = session.custom_title.as_deref().unwrap_or(&session.summary);
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    (!line.is_empty()).then(|| match line.char_indices().nth(MAX_TITLE_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    })
}

/// The time of the last change.
pub(crate) fn updated_at(session: &SessionSummary) -> Option<String> {
    let time = Timestamp::from_millisecond(i64::try_from(session.last_modified).ok()?).ok()?;
    Some(time.to_string())
}

fn to_info(session: &SessionSummary) -> SessionInfo {
    SessionInfo::new(session.session_id.clone(), session.cwd.clone().unwrap_or_default())
        .title(title(session))
        .updated_at(updated_at(session))
}

/// The place of a session in the list.
type Position = (Reverse<u64>, String);

fn position(session: &SessionSummary) -> Position {
    (Reverse(session.last_modified), session.session_id.clone())
}

fn to_cursor(session: &SessionSummary) -> String {
    format!("{}.{}", session.last_modified, session.session_id)
}

fn parse_cursor(cursor: &str) -> Result<Position, Error> {
    let parts = cursor.split_once('.').and_then(|(time, id)| Some((time.parse().ok()?, id.to_owned())));
    let (time, id) =
        parts.ok_or_else(|| invalid_params(format!("the cursor {cursor} is not one of this agent")))?;
    Ok((Reverse(time), id))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(id: &str, last_modified: u64, cwd: Option<&str>) -> SessionSummary {
        SessionSummary {
            session_id: id.into(),
            summary: format!("about\n{id}"),
            last_modified,
            file_size: None,
            custom_title: None,
            first_prompt: None,
            git_branch: None,
            cwd: cwd.map(Into::into),
            tag: None,
            created_at: None,
        }
    }

    fn ids(response: &ListSessionsResponse) -> Vec<&str> {
        response.sessions.iter().map(|session| &*session.session_id.0).collect()
    }

    #[test]
    fn list_has_the_newest_first_and_only_those_of_a_directory() {
        let sessions = || {
            vec![
                session("old", 1, Some("/a")),
                session("new", 2, Some("/a")),
                session("b", 3, Some("/b")),
                session("x", 4, None),
            ]
        };
        let listed = page(sessions(), Some(Path::new("/a")), None).unwrap();
        assert_eq!((ids(&listed), listed.next_cursor.as_deref()), (vec!["new", "old"], None));
        assert_eq!(listed.sessions[0].title.as_deref(), Some("about new"));
        assert_eq!(listed.sessions[0].updated_at.as_deref(), Some("1970-01-01T00:00:00.002Z"));
        assert_eq!(ids(&page(sessions(), None, None).unwrap()), ["b", "new", "old"]);
        assert_eq!(ids(&page(sessions(), Some(Path::new("/none")), None).unwrap()), [""; 0]);
    }

    #[test]
    fn pages_follow_each_other_and_a_bad_cursor_is_an_error() {
        let all: Vec<_> = (0..120).map(|n| session(&format!("s{n:03}"), 1000 - n / 2, Some("/a"))).collect();
        let (mut seen, mut cursor) = (Vec::new(), None);
        loop {
            let listed = page(all.clone(), None, cursor.as_deref()).unwrap();
            seen.extend(ids(&listed).into_iter().map(str::to_owned));
            cursor = listed.next_cursor.clone();
            if cursor.is_none() {
                break;
            }
        }
        let expected: Vec<String> = all.iter().map(|session| session.session_id.clone()).collect();
        assert_eq!(seen, expected);
        assert!(page(all, None, Some("x")).is_err());
    }
}
