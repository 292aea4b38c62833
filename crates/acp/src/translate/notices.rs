//! News beside the conversation: retries, fallback models, servers that do not start, warnings. They go to editors that
//! show notices; other editors only get what ends the turn, as text.

use agent_client_protocol::v1::schema::{Notice, NoticeSeverity, SessionUpdate};
use whimbrel::wire::notice::{RateLimitEvent, RateLimitStatus};
use whimbrel::wire::system::{ApiRetry, InformationLevel, Informational, SystemEvent};

use super::text::first_line;
use super::text_chunk;
use crate::capabilities::ClientFeatures;

/// Translates news of the engine.
pub(super) fn translate(event: &SystemEvent, features: ClientFeatures) -> Vec<SessionUpdate> {
    if let SystemEvent::Informational(news) = event
        && news.prevent_continuation == Some(true)
        && !features.notices
    {
        return vec![SessionUpdate::AgentMessageChunk(text_chunk(&news.content, None))];
    }
    if !features.notices {
        return Vec::new();
    }
    match event {
        SystemEvent::ApiRetry(retry) => vec![retry_notice(retry)],
        SystemEvent::ModelFallback(fallback) => vec![notice(NoticeSeverity::Warning, &fallback.content)],
        SystemEvent::ModelRefusalFallback(fallback) => {
            vec![notice(NoticeSeverity::Warning, &fallback.content)]
        }
        SystemEvent::Informational(news) => information_notice(news).into_iter().collect(),
        SystemEvent::Notification(news) => vec![notice(NoticeSeverity::Info, &news.text)],
        SystemEvent::SessionWritesLost(lost) => vec![detailed(
            NoticeSeverity::Error,
            "The session could not be saved",
            format!(
                "{}: free some space; the conversation goes on but cannot be resumed as it is.",
                lost.error_code
            ),
        )],
        _ => Vec::new(),
    }
}

/// Translates the state of a rate limit.
pub(super) fn rate_limit(event: &RateLimitEvent, features: ClientFeatures) -> Option<SessionUpdate> {
    let (severity, title) = match event.rate_limit_info.status {
        RateLimitStatus::AllowedWarning => (NoticeSeverity::Warning, "The rate limit is nearly reached"),
        RateLimitStatus::Rejected => (NoticeSeverity::Error, "The rate limit is reached"),
        _ => return None,
    };
    features.notices.then(|| SessionUpdate::Notice(Notice::new(severity, title)))
}

fn retry_notice(retry: &ApiRetry) -> SessionUpdate {
    let cause = retry.error_status.map_or_else(|| "no answer".to_owned(), |status| format!("HTTP {status}"));
    let title = format!("The model call is repeated ({} of {})", retry.attempt, retry.max_retries);
    let seconds = retry.retry_delay_ms.div_ceil(1000);
    detailed(NoticeSeverity::Info, &title, format!("{cause}; next attempt in {seconds} s"))
}

fn information_notice(news: &Informational) -> Option<SessionUpdate> {
    let severity = match news.level {
        InformationLevel::Warning => NoticeSeverity::Warning,
        _ => NoticeSeverity::Info,
    };
    (!news.content.trim().is_empty()).then(|| notice(severity, &news.content))
}

/// A notice whose title is the first line, and whose description is the rest.
fn notice(severity: NoticeSeverity, text: &str) -> SessionUpdate {
    let title = first_line(text);
    let rest = text.trim().strip_prefix(&title).map(str::trim).filter(|rest| !rest.is_empty());
    let notice = Notice::new(severity, title);
    SessionUpdate::Notice(match rest {
        Some(rest) => notice.description(rest.to_owned()),
        None => notice,
    })
}

fn detailed(severity: NoticeSeverity, title: &str, description: String) -> SessionUpdate {
    SessionUpdate::Notice(Notice::new(severity, title).description(description))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn editor_without_notices_gets_what_ends_the_turn() {
        let news = |level, prevent_continuation| {
            SystemEvent::Informational(Informational {
                content: "Stopped by a hook.\nIts reason".into(),
                level,
                prevent_continuation,
                ..Informational::default()
            })
        };
        let with_notices = ClientFeatures { notices: true, ..ClientFeatures::default() };
        let shown = translate(&news(InformationLevel::Warning, Some(true)), ClientFeatures::default());
        assert_eq!(json!(shown)[0]["sessionUpdate"], "agent_message_chunk");
        assert_eq!(translate(&news(InformationLevel::Warning, None), ClientFeatures::default()), []);
        let notice = json!(translate(&news(InformationLevel::Warning, None), with_notices));
        assert_eq!(
            (&notice[0]["title"], &notice[0]["description"], &notice[0]["severity"]),
            (&json!("Stopped by a hook."), &json!("Its reason"), &json!("warning"))
        );
    }
}
