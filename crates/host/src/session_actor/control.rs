//! Control requests of clients, and what changes a session as a whole: settings, fork, rewind, title, deletion.

use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};

use serde_json::{Value as Json, json};
use whimbrel::PermissionMode;
use whimbrel::store::ForkOptions;
use whimbrel::wire::control::{
    ControlRequest, ListModels, Response, RewindFilesReply, RewindScope, UpdatePermissions,
};
use whimbrel::wire::permission::{Destination, PermissionBehavior, PermissionUpdate, RuleValue};

use super::actor::Actor;
use super::answer::parse_mode;
use super::{Command, Reply, Rewind, Setting};
use crate::clock;
use crate::error::{ApiError, ApiResult};
use crate::store::access::{Person, audit_step};
use crate::store::requests::RequestRow;
use crate::store::sessions::{SessionRow, SessionState};

/// Control requests that clients may make.
const ALLOWED: [&str; 18] = [
    "interrupt",
    "set_model",
    "set_permission_mode",
    "set_max_thinking_tokens",
    "get_context_usage",
    "get_session_cost",
    "list_models",
    "file_suggestions",
    "read_file",
    "list_permission_rules",
    "mcp_status",
    "mcp_reconnect",
    "mcp_toggle",
    "stop_task",
    "background_tasks",
    "get_task_output",
    "reload_skills",
    "generate_session_title",
];

/// Checks that a control request is one that clients may make; returns its subtype.
pub(crate) fn check_control(request: &Json) -> ApiResult<&str> {
    let subtype = request["subtype"]
        .as_str()
        .ok_or_else(|| ApiError::bad_request("the control request has no `subtype`"))?;
    if !ALLOWED.contains(&subtype) {
        return Err(ApiError::not_allowed(format!(
            "the control request {subtype} is not open to clients. Open are: {}",
            ALLOWED.join(", ")
        )));
    }
    Ok(subtype)
}

impl Actor {
    /// Passes a control request to the engine, in a task of its own: frames go on meanwhile.
    pub(super) async fn control(&mut self, request: Json, person: Person, reply: Reply<Json>) {
        let prepared = match self.prepare_control(&request, &person).await {
            Ok(prepared) => prepared,
            Err(error) => {
                let _ = reply.send(Err(error));
                return;
            }
        };
        if prepared.request.subtype() == "list_models" && self.engine.is_none() {
            let host = std::sync::Arc::clone(&self.host);
            let folder = self.row.folder.clone();
            // Not the session itself: a session that is only looked at stays free for the terminal.
            tokio::spawn(async move {
                let _ = reply.send(list_models(&host, &folder).await);
            });
            return;
        }
        let Some(controls) = self.controls().cloned() else { return };
        let commands = self.commands.clone();
        tokio::spawn(async move {
            let result = match controls.call_any(prepared.request).await {
                Ok(response) => to_reply(&response),
                Err(error) => Err(ApiError::bad_input(error.to_string())),
            };
            if result.is_ok()
                && let Some(setting) = prepared.setting
                && let Some(commands) = commands.upgrade()
            {
                // An actor that has ended has no settings.
                let _ = commands.send(Command::SettingChanged { setting, person }).await;
            }
            let _ = reply.send(result);
        });
    }

    async fn prepare_control(&mut self, request: &Json, person: &Person) -> ApiResult<PreparedControl> {
        let mut request = request.clone();
        let subtype = check_control(&request)?.to_owned();
        if subtype == "interrupt" && self.turn.is_none() {
            return Err(ApiError::not_running("no turn runs: there is nothing to interrupt"));
        }
        if subtype == "read_file" {
            // The engine reads the file that was checked.
            let path = self.check_path(request["path"].as_str().unwrap_or_default()).await?;
            request["path"] = path.display().to_string().into();
        }
        if subtype == "file_suggestions" {
            check_query(request["query"].as_str().unwrap_or_default())?;
        }
        let setting = match subtype.as_str() {
            "set_model" => Some(Setting::Model(request["model"].as_str().map(str::to_owned))),
            "set_permission_mode" => {
                let mode = parse_mode(request["mode"].as_str().unwrap_or_default())?;
                if mode == PermissionMode::BypassPermissions {
                    crate::access::check_may_bypass(person)?;
                }
                self.mode_by = Some((mode, person.clone()));
                Some(Setting::Mode(mode))
            }
            _ => None,
        };
        let line = json!({"request_id": "client", "request": request}).to_string();
        let parsed: ControlRequest =
            serde_json::from_str(&line).map_err(|error| ApiError::bad_request(error.to_string()))?;
        if subtype != "list_models" {
            self.open_engine().await?;
        }
        Ok(PreparedControl { request: parsed.request, setting })
    }

    /// Resolves a file that is read for a client. It must be below the session's folder or the roots, after links are
    /// followed.
    async fn check_path(&self, path: &str) -> ApiResult<PathBuf> {
        let whole = Path::new(&self.row.folder).join(path);
        let outside = || ApiError::outside_roots(format!("{path} is not below the folder of the session"));
        if whole.components().any(|part| part == Component::ParentDir) {
            return Err(outside());
        }
        let resolved = tokio::fs::canonicalize(&whole)
            .await
            .map_err(|error| ApiError::not_found(format!("{path} cannot be read: {error}")))?;
        if resolved.starts_with(&self.row.folder) || self.host.is_below_roots(&resolved) {
            return Ok(resolved);
        }
        Err(outside())
    }

    /// A setting was changed at the engine.
    pub(super) async fn handle_setting(&mut self, setting: Setting, person: &Person) {
        match setting {
            Setting::Model(model) => {
                self.add_host_event("settings", json!({"model": model, "by": person.to_by()}));
                self.row.model = model;
            }
            Setting::Mode(mode) => self.note_mode(mode),
        }
        self.flush_facts().await;
    }

    /// The engine works in this mode now, by whichever request it was set.
    pub(super) fn note_mode(&mut self, mode: PermissionMode) {
        let by = self.mode_by.take_if(|(wanted, _)| *wanted == mode).map(|(_, person)| person);
        let name = mode.to_string();
        let is_first = self.row.mode.is_none() && mode == PermissionMode::Default;
        if self.row.mode.replace(name.clone()).as_ref() == Some(&name) || is_first {
            return;
        }
        let is_bypass = mode == PermissionMode::BypassPermissions;
        let limit = i64::try_from(self.host.limits.bypass_s.saturating_mul(1000)).unwrap_or(i64::MAX / 2);
        self.row.bypass_until = is_bypass.then(|| clock::now_ms().saturating_add(limit));
        if is_bypass {
            let audit = json!({"session": self.row.id, "folder": self.row.folder});
            let person = by.as_ref().map(|person| person.id.as_str());
            self.log.add_step(audit_step(person, "bypass", &audit));
        }
        self.add_host_event("settings", json!({"mode": name, "by": by.map(|person| person.to_by())}));
    }

    /// A bypass of permissions ends after a while, and with the process.
    pub(super) async fn end_expired_bypass(&mut self) {
        let has_expired = self.row.bypass_until.is_some_and(|until| until <= clock::now_ms());
        if !has_expired {
            return;
        }
        if let Some(controls) = self.controls().cloned() {
            // A session that has ended has no mode.
            let _ = controls.set_permission_mode(PermissionMode::Default).await;
        }
        self.note_mode(PermissionMode::Default);
        self.flush_facts().await;
    }

    /// Ends a permission rule, as `list_permission_rules` names it.
    pub(super) async fn remove_rule(
        &mut self,
        rule: &str,
        behavior: PermissionBehavior,
        destination: Destination,
    ) -> ApiResult<()> {
        self.open_engine().await?;
        let Some(controls) = self.controls().cloned() else {
            return Err(ApiError::not_running("the session has ended: try again"));
        };
        let rules = vec![parse_rule(rule)];
        let updates = vec![PermissionUpdate::RemoveRules { rules, behavior, destination }];
        let removed = controls.call(UpdatePermissions { updates }).await;
        removed.map(drop).map_err(|error| ApiError::bad_input(error.to_string()))
    }

    /// Copies the conversation to a new session.
    pub(super) async fn fork(
        &mut self,
        at: Option<String>,
        title: Option<String>,
        key: &str,
        person: &Person,
    ) -> ApiResult<SessionRow> {
        let digest = clock::digest(&json!([self.row.id, at, title]).to_string());
        if let Some((known, known_digest)) = self.host.store.session_by_key(key).await? {
            return match known_digest.as_deref() == Some(&digest) {
                true => Ok(known),
                false => Err(ApiError::key_reused(format!("the key {key:?} was used for another request"))),
            };
        }
        self.host.check_not_draining()?;
        let options = ForkOptions { at, title: title.clone() };
        let engine_session = self.host.transcripts.fork(&self.row.engine_session, options).await?;
        let title = title.unwrap_or_else(|| format!("{} (fork)", self.row.title));
        let mut row = SessionRow::new(self.row.folder.clone(), title, &self.row.origin);
        row.id.clone_from(&engine_session);
        row.engine_session = engine_session;
        row.parent = Some(self.row.id.clone());
        row.model.clone_from(&self.row.model);
        let audit = json!({"session": self.row.id, "to": row.id});
        self.log.add_step(row.insert(Some(key), Some(&digest)).required());
        self.log.add_step(audit_step(Some(&person.id), "fork", &audit));
        self.add_host_event("forked", json!({"to": row.id}));
        if let Err(error) = self.flush().await {
            // The copy has no session: nothing is left of it.
            let _ = self.host.transcripts.delete(&row.engine_session).await;
            return Err(error);
        }
        Ok(row)
    }

    /// Puts files, the conversation or both back to before a message.
    pub(super) async fn rewind(&mut self, rewind: Rewind, person: &Person) -> ApiResult<Json> {
        let Rewind { to, files, conversation, dry_run } = rewind;
        let scope = match (files, conversation) {
            (true, true) => RewindScope::Both,
            (true, false) => RewindScope::Files,
            (false, true) => RewindScope::Conversation,
            (false, false) => {
                return Err(ApiError::bad_request(
                    "set `files`, `conversation` or both: nothing is to be rewound",
                ));
            }
        };
        self.host.check_not_draining()?;
        self.check_resting()?;
        self.open_engine().await?;
        let Some(controls) = self.controls().cloned() else {
            return Err(ApiError::not_running("the session has ended: try again"));
        };
        let plan = controls.plan_rewind(&to, scope).await;
        let before = existing_files(plan.as_ref().ok().and_then(|plan| plan.files.as_ref())).await;
        let reply = if dry_run { plan } else { controls.rewind(&to, scope).await };
        let reply = reply.map_err(|error| ApiError::bad_input(format!("{error}")))?;
        let after = existing_files(reply.files.as_ref()).await;
        let files_reply = reply.files.unwrap_or_default();
        if let Some(error) = files_reply.error.filter(|_| files && !files_reply.can_rewind) {
            return Err(ApiError::bad_input(error));
        }
        let paths = files_reply.files_changed.unwrap_or_default();
        if !dry_run {
            let event = json!({"to": to, "files": paths, "conversation": conversation, "undo": reply.undo_id,
                               "by": person.to_by()});
            self.add_host_event("rewound", event);
            self.flush().await?;
        }
        let change_of = |path: &String| match (before.contains(path), after.contains(path)) {
            (false, _) => "created",
            (true, false) => "removed",
            (true, true) => "restored",
        };
        let changes: Json =
            paths.iter().map(|path| json!({"path": path, "change": change_of(path)})).collect();
        let mut result = json!({"files": changes, "session": self.fresh_row().await?.to_json()});
        if let Some(undo) = reply.undo_id {
            result["undo"] = undo.into();
        }
        if let Some(prompt) = reply.prompt {
            result["prompt"] = json!({"text": prompt.text, "attachments": prompt.attachments});
        }
        Ok(result)
    }

    /// Changes title or archive.
    pub(super) async fn change(
        &mut self,
        title: Option<String>,
        archived: Option<bool>,
    ) -> ApiResult<SessionRow> {
        if let Some(title) = title {
            let title = title.trim().to_owned();
            if title.is_empty() || title.len() > 500 {
                return Err(ApiError::bad_request("`title` must have 1 to 500 bytes"));
            }
            // The terminal shows the same title. A session without a transcript has none yet.
            let _ = self.host.transcripts.rename(&self.row.engine_session, &title).await;
            self.row.title = title;
        }
        if let Some(archived) = archived {
            self.row.archived = archived;
        }
        let steps = vec![self.lease.guard(), self.row.update()];
        if let Err(error) = self.host.store.write(steps.into()).await {
            self.row.clone_from(&self.settled);
            return Err(error.into());
        }
        self.settled.clone_from(&self.row);
        self.announce().await;
        self.fresh_row().await
    }

    /// Deletes the session with its transcript.
    pub(super) async fn delete(&mut self, person: &Person) -> ApiResult<()> {
        if self.row.state == SessionState::Elsewhere {
            return Err(ApiError::session_elsewhere(
                "another program has this session open: end it there first",
            ));
        }
        if self.turn.is_some()
            && let Some(controls) = self.controls().cloned()
        {
            // The engine is stopped next anyway.
            let _ = controls.interrupt().await;
        }
        self.stop_engine().await;
        self.requests.clear();
        let open = self.host.store.requests(Some("open"), Some(&self.row.id), None, i64::MAX).await?;
        let uploads = self.host.store.uploads_of(&self.row.id).await?;
        match self.host.transcripts.delete(&self.row.engine_session).await {
            Ok(()) | Err(whimbrel::store::SessionsError::Find(_)) => {}
            Err(error) => return Err(error.into()),
        }
        self.host.store.delete_session(&self.row.id).await?;
        let audit = json!({"session": self.row.id, "title": self.row.title});
        self.host.store.write_one(audit_step(Some(&person.id), "delete", &audit)).await?;
        crate::uploads::delete_files(&self.host.data, &self.row.id, &uploads).await;
        for request in open {
            let closed =
                RequestRow { state: "withdrawn".into(), closed_at: Some(clock::now_ms()), ..request };
            self.host.hub.request_changed(&closed.to_json());
        }
        self.host.hub.session_changed(&json!({"id": self.row.id, "deleted": true}));
        self.log.close_outlets();
        self.is_over = true;
        Ok(())
    }
}

/// A rule such as `Bash(ls \\(x\\))`, in which parentheses and backslashes are escaped.
fn parse_rule(text: &str) -> RuleValue {
    let Some((tool, rest)) = text.split_once('(') else {
        return RuleValue { tool_name: text.to_owned(), rule_content: None };
    };
    let mut content = String::new();
    let mut letters = rest.strip_suffix(')').unwrap_or(rest).chars();
    while let Some(letter) = letters.next() {
        content.push(if letter == '\\' { letters.next().unwrap_or(letter) } else { letter });
    }
    RuleValue { tool_name: tool.to_owned(), rule_content: Some(content) }
}

/// The files of a rewind that exist now.
async fn existing_files(files: Option<&RewindFilesReply>) -> HashSet<String> {
    let mut found = HashSet::new();
    for path in files.and_then(|files| files.files_changed.as_ref()).into_iter().flatten() {
        if tokio::fs::try_exists(path).await.unwrap_or_default() {
            found.insert(path.clone());
        }
    }
    found
}

/// The models that a session in a folder would have.
async fn list_models(host: &crate::host::Host, folder: &str) -> ApiResult<Json> {
    let agent = host.agent.clone().cwd(folder).persist_session(false);
    let failed = |error: String| ApiError::bad_input(format!("the models cannot be listed: {error}"));
    let session = whimbrel::Session::open(&agent).await.map_err(|error| failed(error.to_string()))?;
    let response =
        session.controls().call_any(ListModels {}).await.map_err(|error| failed(error.to_string()))?;
    to_reply(&response)
}

/// A control request that may be made.
struct PreparedControl {
    request: whimbrel::wire::control::Request,
    setting: Option<Setting>,
}

fn check_query(query: &str) -> ApiResult<()> {
    let leaves = Path::new(query).components().any(|part| part == Component::ParentDir);
    if leaves || query.starts_with('/') || query.starts_with('~') {
        return Err(ApiError::outside_roots("`query` must name files below the folder of the session"));
    }
    Ok(())
}

/// The reply of the engine as clients get it.
fn to_reply(response: &Response) -> ApiResult<Json> {
    match response {
        Response::Success { response, .. } => {
            let text = response.as_ref().map_or("{}", |reply| reply.as_str());
            Ok(serde_json::from_str(text).unwrap_or_else(|_| json!({})))
        }
        Response::Error { error, error_code, .. } => match error_code.as_deref() {
            Some("unsupported_request") => Err(ApiError::not_found(error.clone())),
            _ => Err(ApiError::bad_input(error.clone())),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_parsed_as_they_are_listed() {
        for (text, tool, content) in [
            ("WebSearch", "WebSearch", None),
            ("Bash(touch made)", "Bash", Some("touch made")),
            (r"Bash(echo \(a\) \\)", "Bash", Some(r"echo (a) \")),
        ] {
            let rule = parse_rule(text);
            assert_eq!((rule.tool_name.as_str(), rule.rule_content.as_deref()), (tool, content), "{text}");
        }
    }

    #[test]
    fn only_listed_requests_are_open() {
        assert_eq!(check_control(&json!({"subtype": "interrupt"})).unwrap(), "interrupt");
        let codes = [json!({"subtype": "initialize"}), json!({"subtype": "update_settings"})]
            .map(|request| check_control(&request).unwrap_err().code);
        assert_eq!(codes, ["not_allowed", "not_allowed"]);
        assert_eq!(check_control(&json!({})).unwrap_err().code, "bad_request");
    }

    #[test]
    fn suggestions_stay_below_the_folder() {
        for (query, inside) in
            [("src/ma", true), ("../x", false), ("/etc/pa", false), ("~/x", false), ("a/../../b", false)]
        {
            assert_eq!(check_query(query).is_ok(), inside, "{query}");
        }
    }
}
