//! Requests to the engine, each in a task of its own whose result is a reply.

use std::path::PathBuf;
use std::time::SystemTime;

use serde_json::{Map, json};
use whimbrel::wire::content::{Block, Content, Source};
use whimbrel::wire::control::{
    ApplyFlagSettings, BackgroundTasks, FileSuggestions, GetContextUsage, GetSessionCost, GetTaskOutput,
    ListPermissionRules, RewindScope, SetModel, SetPermissionMode,
};
use whimbrel::wire::message::User;
use whimbrel::{Agent, Controls, Error, store::Sessions};

use super::edge::ReplySender;
use super::reply_or_failed;
use crate::app::effect::Effect;
use crate::app::event::Reply;
use crate::editor::Piece;
use crate::pickers::SessionScope;
use crate::sessions::{StoredSession, prompts, split_items};

/// Sessions in the picker at most.
const MAX_LISTED_SESSIONS: usize = 200;

#[expect(clippy::disallowed_methods, reason = "a host gives its prompts ids")]
pub(super) fn new_uuid() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// Runs a task and sends its reply.
fn spawn(replies: ReplySender, task: impl Future<Output = Option<Reply>> + Send + 'static) {
    tokio::spawn(async move {
        if let Some(reply) = task.await {
            // After the end of the loop the reply does not matter.
            let _ = replies.send(reply);
        }
    });
}

/// Reads what the engine offers, and subscribes to the output of commands.
pub(super) fn read_info(controls: Controls, replies: ReplySender) {
    spawn(replies, async move {
        // An engine that does not know it shows output when a command has ended.
        let _ = controls.subscribe_tool_output(true).await;
        Some(reply_or_failed(controls.info().await, |info| Reply::Info {
            commands: info.commands.clone(),
            models: info.models.clone(),
            mode: info.current_permission_mode,
        }))
    });
}

/// Lets calls go on that waited for an answer when the engine of a resumed session ended: they are asked about again.
pub(super) fn resume_calls(controls: Controls, replies: ReplySender) {
    spawn(replies, async move {
        // A prompt that came first has made them void.
        let _ = controls.resume_pending_calls().await;
        None
    });
}

/// Carries out an effect that is a request to the engine.
pub(super) fn perform(effect: Effect, controls: Controls, replies: ReplySender) {
    spawn(replies, async move { request(effect, &controls).await });
}

async fn request(effect: Effect, controls: &Controls) -> Option<Reply> {
    let failed = |result: Result<(), Error>| result.err().map(|error| Reply::Failed(error.to_string()));
    match effect {
        Effect::Send { uuid, content, priority } => {
            let user = User { uuid: Some(uuid), priority, ..User::prompt(to_content(content)) };
            failed(controls.send(user).await)
        }
        Effect::RecordShell { command, output } => {
            let text = format!("The user ran a command line:\n$ {command}\n{output}");
            let user = User { should_query: Some(false), ..User::prompt(text) };
            failed(controls.send(user).await)
        }
        Effect::Interrupt => failed(controls.interrupt().await),
        Effect::SetMode(mode) => {
            let reply = controls.call(SetPermissionMode { mode }).await;
            Some(reply_or_failed(reply, |reply| Reply::Mode(reply.mode)))
        }
        Effect::SetModel(model) => {
            let reply = controls.call(SetModel { model }).await;
            Some(reply_or_failed(reply, |reply| Reply::Model(reply.model)))
        }
        Effect::SetEffort(effort) => {
            let settings = Map::from_iter([("effortLevel".to_owned(), json!(effort))]);
            let reply = controls.call(ApplyFlagSettings { settings }).await;
            Some(reply_or_failed(reply, |_| Reply::Done(format!("the effort is {effort}"))))
        }
        Effect::Background => {
            let reply = controls.call(BackgroundTasks::default()).await;
            Some(reply_or_failed(reply, |_| {
                Reply::Done("what ran goes on in the background; /tasks lists it".into())
            }))
        }
        Effect::StopTask(id) => {
            let stopped = controls.stop_task(id.clone()).await;
            Some(reply_or_failed(stopped, |()| Reply::Done(format!("task {id} is stopped"))))
        }
        Effect::ReadTask(task_id) => {
            let reply = controls.call(GetTaskOutput { task_id: task_id.clone() }).await;
            Some(reply_or_failed(reply, |reply| Reply::TaskOutput {
                task_id,
                output: reply.output,
                total_bytes: reply.total_bytes,
            }))
        }
        Effect::SuggestFiles(query) => {
            let reply = controls.call(FileSuggestions { query: query.clone() }).await.ok()?;
            let paths =
                reply.suggestions.iter().filter_map(|entry| entry["path"].as_str().map(str::to_owned));
            Some(Reply::Files { query, paths: paths.collect() })
        }
        Effect::ShowContext => {
            let reply = controls.call(GetContextUsage::default()).await;
            Some(reply_or_failed(reply, |usage| Reply::Page(render_context(&usage))))
        }
        Effect::ShowCost => {
            let reply = controls.call(GetSessionCost {}).await;
            Some(reply_or_failed(reply, |cost| Reply::Page(format!("```\n{}\n```", cost.text.trim_end()))))
        }
        Effect::ShowPermissions => {
            let reply = controls.call(ListPermissionRules {}).await;
            Some(reply_or_failed(reply, |rules| Reply::Page(render_rules(&rules.state.rules))))
        }
        Effect::ListMcpServers => Some(reply_or_failed(controls.mcp_status().await, Reply::McpServers)),
        Effect::ReconnectMcp(name) => {
            let reply = controls.reconnect_mcp_server(name.clone()).await;
            Some(reply_or_failed(reply, |()| Reply::Done(format!("{name} is connected"))))
        }
        Effect::ToggleMcp { name, enabled } => {
            let reply = controls.toggle_mcp_server(name.clone(), enabled).await;
            let word = if enabled { "enabled" } else { "disabled" };
            Some(reply_or_failed(reply, |()| Reply::Done(format!("{name} is {word}"))))
        }
        effect => rewind(effect, controls).await,
    }
}

async fn rewind(effect: Effect, controls: &Controls) -> Option<Reply> {
    match effect {
        Effect::PlanRewind { prompt } => {
            let reply = controls.plan_rewind(prompt.clone(), RewindScope::Both).await;
            let reply = match reply {
                Ok(reply) => Ok(reply),
                // Without checkpoints the talk can still go back.
                Err(_) => controls.plan_rewind(prompt.clone(), RewindScope::Conversation).await,
            };
            Some(reply_or_failed(reply, |reply| Reply::RewindPlan { prompt, reply: Box::new(reply) }))
        }
        Effect::Rewind { prompt, scope } => {
            let reply = controls.rewind(prompt.clone(), scope).await;
            Some(reply_or_failed(reply, |reply| {
                let files =
                    reply.files.as_ref().and_then(|files| files.files_changed.as_ref()).map_or(0, Vec::len);
                let summary = match scope {
                    RewindScope::Conversation => {
                        format!("went back: {} messages dropped", reply.messages_dropped)
                    }
                    RewindScope::Files => format!("went back: {files} files restored"),
                    RewindScope::Both => {
                        format!(
                            "went back: {} messages dropped, {files} files restored",
                            reply.messages_dropped
                        )
                    }
                };
                let text = match scope {
                    RewindScope::Files => String::new(),
                    _ => reply.prompt.map(|prompt| prompt.text).unwrap_or_default(),
                };
                Reply::Rewound { prompt, scope, text, summary }
            }))
        }
        _ => None,
    }
}

fn to_content(pieces: Vec<Piece>) -> Content {
    let blocks = match <[Piece; 1]>::try_from(pieces) {
        Ok([Piece::Text(text)]) => return text.into(),
        Ok(pieces) => pieces.into(),
        Err(pieces) => pieces,
    };
    let to_block = |piece: Piece| match piece {
        Piece::Text(text) => Block::text(text),
        Piece::Picture(_, picture) => Block::Image {
            source: Source::Base64 { media_type: picture.media_type, data: picture.data.to_string() },
        },
    };
    blocks.into_iter().map(to_block).collect::<Vec<_>>().into()
}

fn render_context(usage: &whimbrel::wire::control::ContextUsage) -> String {
    let mut page = format!(
        "**Context** {} of {} tokens ({:.0} %), {}\n\n| part | tokens |\n|---|---|\n",
        usage.total_tokens, usage.max_tokens, usage.percentage, usage.model
    );
    for category in &usage.categories {
        page += &format!("| {} | {} |\n", category.name.replace('|', "\\|"), category.tokens);
    }
    page
}

fn render_rules(rules: &[serde_json::Value]) -> String {
    if rules.is_empty() {
        return "There are no permission rules. The prompts of tool calls can add some.".into();
    }
    let mut page = String::from("| rule | says | kept in |\n|---|---|---|\n");
    for rule in rules {
        let field = |names: &[&str]| {
            names.iter().find_map(|name| rule.get(*name)?.as_str()).unwrap_or_default().replace('|', "\\|")
        };
        page += &format!(
            "| `{}` | {} | {} |\n",
            field(&["rule", "text"]),
            field(&["behavior"]),
            field(&["source"])
        );
    }
    page
}

#[expect(clippy::disallowed_methods, reason = "the picker shows how old sessions are")]
fn unix_ms() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// Lists stored sessions.
pub(super) fn list_sessions(agent: &Agent, scope: SessionScope, cwd: PathBuf, replies: ReplySender) {
    let sessions = agent.sessions();
    spawn(replies, async move { Some(reply_or_failed(list(sessions, scope, &cwd).await, |reply| reply)) });
}

async fn list(
    sessions: Result<Sessions, Error>,
    scope: SessionScope,
    cwd: &std::path::Path,
) -> Result<Reply, Error> {
    let listed = sessions?.list().await.map_err(|error| Error::Config(error.to_string()))?;
    let cwd = cwd.display().to_string();
    let in_scope = |session: &StoredSession| scope == SessionScope::AllFolders || session.folder == cwd;
    let sessions = listed.into_iter().map(StoredSession::from).filter(in_scope).take(MAX_LISTED_SESSIONS);
    Ok(Reply::Sessions { scope, sessions: sessions.collect(), now_ms: unix_ms() })
}

/// Reads the end of the session that the options resume, if they do.
pub(super) fn read_configured(agent: &Agent, cwd: PathBuf, replies: ReplySender) {
    if let Some(id) = &agent.options().resume {
        read_resumed(agent, id.clone(), replies);
    } else if agent.options().continue_conversation {
        let sessions = agent.sessions();
        spawn(replies, async move {
            let sessions = sessions.ok()?;
            let folder = cwd.display().to_string();
            let listed = sessions.list().await.ok()?;
            let newest =
                listed.into_iter().find(|session| session.cwd.as_deref() == Some(folder.as_str()))?;
            read_end(&sessions, &newest.session_id).await
        });
    }
}

/// Reads the end of a session that is resumed.
pub(super) fn read_resumed(agent: &Agent, id: String, replies: ReplySender) {
    let sessions = agent.sessions();
    spawn(replies, async move { read_end(&sessions.ok()?, &id).await });
}

async fn read_end(sessions: &Sessions, id: &str) -> Option<Reply> {
    let messages = sessions.messages(id).await.ok()?;
    let (earlier, last) = split_items(&messages);
    Some(Reply::Resumed { earlier, last, prompts: prompts(&messages) })
}
