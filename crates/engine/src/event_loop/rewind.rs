//! The `rewind_session` request: the session goes back to before a prompt, or an earlier rewind is undone.
//!
//! The transcript is append-only: an entry records the rewind, and what is left behind stays in the file. Background work
//! that the dropped messages started is stopped, because the model no longer knows of it.

use std::collections::HashSet;
use std::time::Duration;

use whimbrel_os::{files, ids};
use whimbrel_session_store::RecordedTranscript;
use whimbrel_session_store::checkpoint::RewindMode;
use whimbrel_session_store::load::LoadedConversation;
use whimbrel_session_store::load::rewind::{RewindPlan, RewoundPrompt};
use whimbrel_session_store::rewind_record::RewindRecord;
use whimbrel_session_store::transcript_writer::TranscriptWriter;
use whimbrel_tools::tasks::{TaskSnapshot, TaskState};
use whimbrel_wire::control::{
    ControlResponse, PromptText, RewindFilesReply, RewindScope, RewindSession, RewindSessionReply,
    StoppedTask,
};
use whimbrel_wire::system::ConversationRewound;

use super::Session;
use crate::agents::AgentSpawner;
use crate::conversation::reload::ConversationRewind;
use crate::file_checkpoints;
use crate::setup::session_selection::SessionOrigin;
use crate::transcript_notices;

/// Time for background work of the dropped messages to end before files are restored.
const TASK_STOP_GRACE: Duration = Duration::from_millis(1500);

/// Code of the error while a turn runs or is about to start.
pub(super) const TURN_RUNNING: &str = "turn_running";

impl Session {
    /// Handles the request.
    pub(crate) async fn rewind_session(&mut self, id: String, request: RewindSession) -> ControlResponse {
        if self.is_busy() {
            let text = "The session cannot be rewound while a turn runs or a prompt waits. Interrupt the turn, or wait for \
                its result.";
            return ControlResponse::error_with_code(id, text, TURN_RUNNING);
        }
        match self.run_rewind(request).await {
            Ok(reply) => ControlResponse::success(id, &reply),
            Err(error) => ControlResponse::error(id, error),
        }
    }

    async fn run_rewind(&mut self, request: RewindSession) -> Result<RewindSessionReply, String> {
        let RewindSession { user_message_id: target, restore, dry_run } = request;
        let plan = match self.plan_rewind(&target).await {
            Ok(plan) => Some(plan),
            // Files can be restored without a transcript; only the text of the prompt is missing then.
            Err(_) if restore == RewindScope::Files => None,
            Err(error) => return Err(error),
        };
        let mut reply = RewindSessionReply {
            prompt: plan.as_ref().and_then(|plan| plan.prompt.clone()).map(to_prompt_text),
            ..RewindSessionReply::default()
        };
        if restore != RewindScope::Conversation {
            let files = self.restore_files(&target, RewindMode::DryRun).await;
            if dry_run != Some(true) {
                // Nothing is changed if no file can be restored.
                files?;
            } else {
                let failed = |error| RewindFilesReply { error: Some(error), ..RewindFilesReply::default() };
                reply.files = Some(files.unwrap_or_else(failed));
            }
        }
        let plan = plan.filter(|_| restore != RewindScope::Files);
        if let Some(plan) = &plan {
            reply.messages_dropped = plan.messages_dropped as u64;
            reply.prompts_dropped = plan.prompts_dropped as u64;
            reply.messages_restored = plan.messages_restored as u64;
            reply.last_message_id.clone_from(&plan.last_message);
            reply.stopped_tasks = self.work_started_by(&plan.dropped_calls);
        }
        if dry_run == Some(true) {
            return Ok(reply);
        }
        if let Some(plan) = &plan {
            self.stop_work(&plan.dropped_calls, &reply.stopped_tasks).await;
        }
        let undo_id = ids::new_uuid();
        file_checkpoints::begin_checkpoint(&self.setup.session.workspace, Some(&undo_id)).await;
        if restore != RewindScope::Conversation {
            reply.files = Some(self.restore_files(&target, RewindMode::Restore).await?);
        }
        if let Some(plan) = plan {
            let (to, last_prompt) = (plan.loaded.leaf.clone(), plan.last_prompt);
            let record = RewindRecord { uuid: undo_id.clone(), to, last_prompt };
            let notice = ConversationRewound { user_message_id: target, last_message_id: plan.last_message };
            self.rewind_conversation(ConversationRewind { record, loaded: plan.loaded, notice }).await?;
        }
        file_checkpoints::warn_about_losses(&self.setup.session.workspace, &self.host.frame_sender).await;
        reply.undo_id = Some(undo_id);
        Ok(reply)
    }

    async fn plan_rewind(&mut self, target: &str) -> Result<RewindPlan, String> {
        let current = match (&self.main_agent.idle, &self.setup.session.resumed) {
            (Some(agent), _) => agent.conversation.leaf(),
            (None, Some(resumed)) if self.setup.session.origin != SessionOrigin::New => {
                resumed.loaded.leaf.as_deref()
            }
            (None, _) => return Err("The session has no prompt yet.".into()),
        };
        let (current, target) = (current.map(str::to_owned), target.to_owned());
        let transcript = self.read_transcript().await?;
        let plan = files::run_blocking(move || transcript.plan_rewind(&target, current.as_deref())).await;
        plan.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
    }

    /// Reads back the transcript of this session.
    pub(super) async fn read_transcript(&mut self) -> Result<RecordedTranscript, String> {
        if let Some(handles) = &self.main_agent.handles {
            let written = handles.transcript_writer().write_pending().await;
            transcript_notices::publish_notices(handles.transcript_writer(), &self.host.frame_sender).await;
            written.map_err(|error| format!("The transcript cannot be written now: {error}."))?;
        }
        let session = &self.setup.session;
        match (&session.persistence.store_writer, &session.transcript_dir) {
            (Some(store_writer), _) => {
                let read = RecordedTranscript::from_store(store_writer, &session.id).await;
                read.map_err(|error| format!("The session store cannot be read: {error}."))
            }
            (None, Some(dir)) => Ok(RecordedTranscript::File(dir.transcript(&session.id))),
            (None, None) => {
                Err("This session is not stored, so its earlier states are not known. Start it with a \
                transcript or with a session store."
                    .into())
            }
        }
    }

    async fn restore_files(&mut self, target: &str, mode: RewindMode) -> Result<RewindFilesReply, String> {
        file_checkpoints::rewind_files(&self.setup.session.workspace, target.to_owned(), mode).await
    }

    /// Running background work that these calls started.
    fn work_started_by(&self, calls: &HashSet<String>) -> Vec<StoppedTask> {
        let tasks = self.tasks.started_by(calls).into_iter().filter(|task| task.state == TaskState::Running);
        let tasks =
            tasks.map(|task| StoppedTask { task_id: task.info.task_id, description: task.info.description });
        let jobs = self.tasks.timers().jobs().into_iter().filter(|job| calls.contains(&job.tool_use_id));
        tasks.chain(jobs.map(|job| StoppedTask { task_id: job.id, description: job.prompt })).collect()
    }

    /// Stops background work of the dropped calls. The model gets no notification about it, and none about work that has
    /// ended.
    async fn stop_work(&mut self, dropped_calls: &HashSet<String>, stopped: &[StoppedTask]) {
        let tasks = self.tasks.started_by(dropped_calls);
        self.progress.dropped_tasks.extend(tasks.into_iter().map(|task| task.info.task_id));
        self.input_queue.drop_notifications(&self.progress.dropped_tasks);
        if stopped.is_empty() {
            return;
        }
        let ids: Vec<String> = stopped.iter().map(|task| task.task_id.clone()).collect();
        self.tasks.timers().cancel(|job| ids.contains(&job.id));
        self.tasks.stop_unnotified(&ids);
        // The event loop waits here, so the time is limited: hooks of the host may take part.
        self.tasks.wait_for_stopped(TASK_STOP_GRACE).await;
    }

    async fn rewind_conversation(&mut self, rewind: ConversationRewind) -> Result<(), String> {
        let Some(mut agent) = self.main_agent.idle.take() else {
            return self.rewind_before_turns(rewind).await;
        };
        let reminder = self.restore_tasks(&rewind.loaded);
        let lost = AgentSpawner::from_context(&agent.tool_env.context)
            .and_then(|spawner| spawner.lost_reminder(&rewind.loaded.awaited_agents));
        agent.rewind(rewind).await;
        for reminder in reminder.into_iter().chain(lost) {
            agent.conversation.push_hidden(&reminder);
        }
        self.main_agent.idle = Some(agent);
        Ok(())
    }

    /// Rewinds a resumed session without a turn yet. Its agent is built later, so that `initialize` can still come.
    async fn rewind_before_turns(&mut self, rewind: ConversationRewind) -> Result<(), String> {
        let ConversationRewind { record, loaded, notice } = rewind;
        let session = &mut self.setup.session;
        let (id, cwd) = (&session.id, session.workspace.root().display().to_string());
        let Some(resumed) = &mut session.resumed else { return Ok(()) };
        let written = match &session.persistence.store_writer {
            Some(store_writer) => {
                let durability = session.persistence.durability;
                let writer = TranscriptWriter::for_store(id, None, store_writer, durability);
                resumed.rewind_in_store(&writer, &cwd, &record, loaded).await
            }
            None => resumed.rewind((id, &cwd), &record, loaded),
        };
        written.map_err(|error| format!("The transcript cannot be written now: {error}."))?;
        self.host.frame_sender.notify_as(record.uuid, notice).await;
        Ok(())
    }

    /// Notifies the model again about tasks of a conversation that came back; returns a reminder about those that have
    /// ended, because their notifications may be dropped.
    fn restore_tasks(&mut self, loaded: &LoadedConversation) -> Option<String> {
        let tasks = self.tasks.started_by(&loaded.call_ids);
        for task in &tasks {
            self.progress.dropped_tasks.remove(&task.info.task_id);
        }
        let has_ended = |task: &&TaskSnapshot| {
            task.background && task.info.owner.is_none() && task.state != TaskState::Running
        };
        let ended = tasks.iter().filter(has_ended);
        let ended: Vec<String> =
            ended.map(|task| format!("{} ({})", task.info.task_id, task.state.as_str())).collect();
        (!ended.is_empty()).then(|| {
            format!(
                "<system-reminder>\nThe user went back to this point of the conversation. Background tasks that have ended \
                 by now: {}. TaskOutput reads their output.\n</system-reminder>",
                ended.join(", ")
            )
        })
    }
}

fn to_prompt_text(prompt: RewoundPrompt) -> PromptText {
    PromptText {
        text: prompt.text,
        attachments: prompt.attachments as u64,
        permission_mode: prompt.permission_mode,
    }
}
