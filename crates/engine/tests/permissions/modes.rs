//! Permission modes that are unavailable, and their errors.

use serde_json::{Value, json};
use whimbrel_testkit::{Host, HostBuilder, Reply};
use whimbrel_wire::permission::{PermissionMode, PermissionResult};

const BYPASS_DISABLED_TEXT: &str =
    "Permissions cannot be bypassed: the settings contain disableBypassPermissionsMode.";

/// A host that denies everything, in a session whose model writes a file.
fn host() -> HostBuilder {
    let write = Reply::tool("Write", json!({"file_path": "a.txt", "content": "x"}));
    Host::with_script([write, Reply::text("Done.")]).can_use_tool(|_| PermissionResult::deny("no"))
}

/// Requests another mode; returns the raw response.
async fn set_mode(host: &mut Host, mode: &str) -> Value {
    let answer =
        host.send_raw_request(json!({"subtype": "set_permission_mode", "mode": mode})).await.unwrap();
    serde_json::to_value(answer).unwrap()
}

/// The only frame with this field value.
fn only_frame<'a>(host: &'a Host, field: &str, value: &str) -> &'a Value {
    let mut frames =
        host.received().iter().map(|received| &received.json).filter(|line| line[field] == value);
    let frame = frames.next().unwrap();
    assert_eq!(frames.next(), None, "{value} is reported once");
    frame
}

#[tokio::test]
async fn auto_mode_warns_and_acts_as_default() {
    let settings = json!({"permissions": {"defaultMode": "auto"}}).to_string();
    let rows = [
        ("by a flag", host().configure(|options| options.permission_mode = Some(PermissionMode::Auto)), None),
        ("by settings", host().configure(|options| options.settings = Some(settings)), None),
        ("by a request", host(), Some("auto")),
    ];
    for (name, host, requested) in rows {
        let mut host = host.start().await.unwrap();
        if let Some(mode) = requested {
            let answer = set_mode(&mut host, mode).await;
            assert_eq!(answer["subtype"], "success", "{name}");
            assert_eq!(answer["response"]["mode"], "default", "{name}");
        }
        host.run("Go.").await.unwrap();
        let warning = "Mode auto is not supported yet: the session asks as in mode default.";
        assert_eq!(only_frame(&host, "level", "warning")["content"], warning, "{name}");
        assert_eq!(only_frame(&host, "subtype", "init")["permissionMode"], "default", "{name}");
        assert_eq!(host.permission_requests().len(), 1, "{name}: it asks");
    }
}

#[tokio::test]
async fn bypass_mode_needs_the_start_flag_and_permitting_settings() {
    let off = || Some(json!({"permissions": {"disableBypassPermissionsMode": "disable"}}));
    let not_launched = (
        "bypass_not_launched",
        "Permissions can only be bypassed in a session that was started with --allow-dangerously-skip-permissions.",
    );
    let disabled = ("bypass_disabled", BYPASS_DISABLED_TEXT);
    let rows = [
        ("not allowed at start", false, None, Some(not_launched)),
        ("disabled by settings", true, off(), Some(disabled)),
        ("both", false, off(), Some(disabled)),
        ("neither", true, None, None),
    ];
    for (name, allowed, managed, error) in rows {
        let mut host = host()
            .configure(|options| {
                options.allow_dangerously_skip_permissions = allowed;
                options.managed_settings = managed;
            })
            .start()
            .await
            .unwrap();
        let answer = set_mode(&mut host, "bypassPermissions").await;
        let id = &answer["request_id"];
        let (expected, mode) = match error {
            Some((code, text)) => {
                (json!({"subtype": "error", "request_id": id, "error": text, "error_code": code}), "default")
            }
            None => {
                let mode = "bypassPermissions";
                (json!({"subtype": "success", "request_id": id, "response": {"mode": mode}}), mode)
            }
        };
        assert_eq!(answer, expected, "{name}");
        host.run("Go.").await.unwrap();
        assert_eq!(only_frame(&host, "subtype", "init")["permissionMode"], mode, "{name}");
        assert_eq!(host.permission_requests().len(), usize::from(error.is_some()), "{name}");
        let status_frames =
            host.received().iter().filter(|received| received.json["subtype"] == "status").count();
        assert_eq!(status_frames, usize::from(error.is_none()), "{name}: only changes are reported");
    }
}

#[tokio::test]
async fn session_cannot_start_in_a_disabled_mode() {
    let off = json!({"permissions": {"disableBypassPermissionsMode": "disable"}});
    let mut host = host()
        .configure(|options| {
            options.permission_mode = Some(PermissionMode::BypassPermissions);
            options.managed_settings = Some(off);
        })
        .start()
        .await
        .unwrap();
    let errors = host.next_result().await.unwrap().errors.unwrap();
    assert_eq!(errors, [BYPASS_DISABLED_TEXT]);
    assert_eq!((host.model_requests().len(), host.finish().await.unwrap().code), (0, 1));
}
