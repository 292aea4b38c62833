//! Notices to the host when an MCP server is lost, reconnected or unusable. Which changes are reported is a pure
//! decision.

use std::collections::BTreeMap;

use tokio_util::sync::CancellationToken;
use whimbrel_mcp::ServerRegistry;
use whimbrel_transport::frame_sender::FrameSender;
use whimbrel_wire::control::{McpConnection, McpServerStatus};
use whimbrel_wire::system::{InformationLevel, Informational};

/// Watches the servers from the `init` frame on, until dropped.
pub(super) async fn watch_status(
    registry: ServerRegistry,
    frame_sender: FrameSender,
    announced: CancellationToken,
) {
    let mut changes = registry.changes();
    announced.cancelled().await;
    let mut before = BTreeMap::new();
    let mut sent_notes = Vec::new();
    loop {
        changes.borrow_and_update();
        for (level, content) in status_changes(&mut before, registry.status()) {
            frame_sender.notify(Informational { content, level, ..Informational::default() }).await;
        }
        for content in
            registry.notes().into_iter().filter(|note| !sent_notes.contains(note)).collect::<Vec<_>>()
        {
            sent_notes.push(content.clone());
            frame_sender.notify(Informational { content, ..Informational::default() }).await;
        }
        if changes.changed().await.is_err() {
            return;
        }
    }
}

/// Compares the statuses with `before`, updates it and returns the changes to report.
fn status_changes(
    before: &mut BTreeMap<String, McpServerStatus>,
    now: Vec<McpServerStatus>,
) -> Vec<(InformationLevel, String)> {
    let mut notices = Vec::new();
    let mut seen = BTreeMap::new();
    for server in now {
        let previous = before.get(&server.name).map_or(&McpConnection::Pending, |previous| &previous.status);
        let was_lost = before.get(&server.name).is_some_and(|previous| previous.error.is_some());
        let name = &server.name;
        let reason = server.error.as_deref().unwrap_or("it is not available.");
        match (previous, &server.status) {
            (previous, now) if previous == now => {}
            (_, McpConnection::Failed | McpConnection::NeedsAuth)
            | (McpConnection::Connected, McpConnection::Pending)
                if server.error.is_some() =>
            {
                notices.push((InformationLevel::Warning, format!("MCP server {name}: {reason}")));
            }
            (_, McpConnection::Connected) if was_lost => {
                notices.push((InformationLevel::Info, format!("MCP server {name} is connected again.")));
            }
            _ => {}
        }
        seen.insert(server.name.clone(), server);
    }
    *before = seen;
    notices
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(status: McpConnection, error: Option<&str>) -> McpServerStatus {
        McpServerStatus {
            name: "s".into(),
            status,
            server_info: None,
            error: error.map(Into::into),
            config: None,
            scope: None,
            source: None,
            tools: None,
        }
    }

    #[test]
    fn only_relevant_status_changes_are_reported() {
        use McpConnection::{Connected, Disabled, Failed, NeedsAuth, Pending};
        let rows: [(&str, McpServerStatus, Option<&str>); 9] = [
            ("starting", server(Pending, None), None),
            ("connected", server(Connected, None), None),
            ("connection lost", server(Pending, Some("gone.")), Some("MCP server s: gone.")),
            ("reconnecting", server(Pending, Some("gone.")), None),
            ("reconnected", server(Connected, None), Some("MCP server s is connected again.")),
            ("failed", server(Failed, Some("broken.")), Some("MCP server s: broken.")),
            ("needs a login", server(NeedsAuth, Some("no login.")), Some("MCP server s: no login.")),
            ("disabled", server(Disabled, None), None),
            ("enabled", server(Pending, None), None),
        ];
        let mut before = BTreeMap::new();
        for (name, now, expected) in rows {
            let notices: Vec<_> =
                status_changes(&mut before, vec![now]).into_iter().map(|(_, text)| text).collect();
            assert_eq!(notices, expected.into_iter().collect::<Vec<_>>(), "{name}");
        }
        let mut before = BTreeMap::new();
        assert_eq!(
            status_changes(&mut before, vec![server(Failed, Some("bad entry."))]).len(),
            1,
            "failed at the start"
        );
    }
}
