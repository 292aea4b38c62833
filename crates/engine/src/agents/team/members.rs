//! State of one team: its members, their mailboxes, and the team configuration.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::json;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use whimbrel_os::clock;
use whimbrel_tools::permission::PlanLock;

use super::LEAD;
use super::message::TeammateInput;
use super::writer::TeamWriter;

const MAX_MEMBERS: usize = 100;

const COLORS: [&str; 6] = ["blue", "green", "yellow", "purple", "orange", "pink"];

pub(super) struct Team {
    pub(super) name: String,
    description: String,
    created_at: u64,
    session_id: String,
    pub(super) writer: Option<TeamWriter>,
    pub(super) members: Vec<TeamMember>,
    /// Number of messages sent.
    pub(super) message_count: usize,
    /// When the last member joined; observed by senders that wait for one.
    pub(super) last_joined: watch::Sender<Instant>,
}

pub(super) struct TeamMember {
    pub(super) spec: MemberSpec,
    pub(super) color: &'static str,
    joined_at: u64,
    /// Unread input.
    pub(super) mailbox: VecDeque<TeammateInput>,
    pub(super) is_running: bool,
    /// Whether it has messaged the lead since its last wake-up.
    pub(super) wrote_to_lead: bool,
    pub(super) is_leaving: bool,
    /// Id of the unanswered shutdown request.
    pub(super) shutdown_request: Option<String>,
    /// The plan that must be approved first, if one is required.
    pub(super) required_plan: Option<RequiredPlan>,
    /// Wakes the teammate.
    pub(super) notify: Arc<Notify>,
    /// Held while it sends a message, so that messages keep their order.
    pub(super) send_lock: Arc<tokio::sync::Mutex<()>>,
}

/// A plan that the lead must approve before the teammate may change anything.
#[derive(Debug)]
pub(super) struct RequiredPlan {
    /// Denies changes until the approval.
    pub(super) plan_lock: PlanLock,
    /// Id of the unanswered approval request.
    pub(super) request_id: Option<String>,
}

/// Properties of a teammate that are fixed when it joins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemberSpec {
    pub name: String,
    /// Id of the task by which it can be stopped.
    pub task_id: String,
    pub agent_type: String,
    pub model: String,
    /// Its first task.
    pub prompt: String,
    pub cwd: String,
}

/// Status of a teammate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberStatus {
    pub spec: MemberSpec,
    /// Whether it is working or has unread input.
    pub is_active: bool,
    pub unread: usize,
}

impl TeamMember {
    pub(super) fn status(&self) -> MemberStatus {
        MemberStatus { spec: self.spec.clone(), is_active: self.is_active(), unread: self.mailbox.len() }
    }

    /// Returns whether it is working or has unread input.
    pub(super) fn is_active(&self) -> bool {
        self.is_running || !self.mailbox.is_empty()
    }
}

impl Team {
    /// Creates a team that has only its lead.
    pub(super) fn new(name: String, description: &str, session_id: &str, writer: Option<TeamWriter>) -> Self {
        let team = Self {
            name,
            description: description.to_owned(),
            created_at: clock::unix_millis(),
            session_id: session_id.to_owned(),
            writer,
            members: Vec::new(),
            message_count: 0,
            last_joined: watch::Sender::new(now()),
        };
        team.write_config();
        team
    }

    pub(super) fn member(&mut self, name: &str) -> Option<&mut TeamMember> {
        self.members.iter_mut().find(|member| member.spec.name == name)
    }

    /// The teammate with this task: another one may have taken its name.
    pub(super) fn member_by_task(&mut self, name: &str, task_id: &str) -> Option<&mut TeamMember> {
        self.member(name).filter(|member| member.spec.task_id == task_id)
    }

    /// Returns whether the name is the lead's or a member's.
    pub(super) fn has_member(&self, name: &str) -> bool {
        name == LEAD || self.members.iter().any(|member| member.spec.name == name)
    }

    /// All names, the lead first.
    pub(super) fn names(&self) -> Vec<String> {
        let members = self.members.iter().map(|member| member.spec.name.clone());
        std::iter::once(LEAD.to_owned()).chain(members).collect()
    }

    /// Adds a member under the wanted name, with a numeric suffix if it is taken; returns the name.
    pub(super) fn add_member(
        &mut self,
        spec: &MemberSpec,
        requested: &str,
        plan_lock: Option<PlanLock>,
    ) -> Result<String, String> {
        if self.members.len() >= MAX_MEMBERS {
            return Err(format!("The team already has {MAX_MEMBERS} members. Give the work to one of them."));
        }
        let name = (1..)
            .map(|nth| if nth == 1 { requested.to_owned() } else { format!("{requested}-{nth}") })
            .find(|name| !self.has_member(name))
            .unwrap_or_else(|| requested.to_owned());
        self.members.push(TeamMember {
            spec: MemberSpec { name: name.clone(), ..spec.clone() },
            color: COLORS[self.members.len() % COLORS.len()],
            joined_at: clock::unix_millis(),
            mailbox: VecDeque::new(),
            is_running: false,
            wrote_to_lead: false,
            is_leaving: false,
            shutdown_request: None,
            required_plan: plan_lock.map(|plan_lock| RequiredPlan { plan_lock, request_id: None }),
            notify: Arc::default(),
            send_lock: Arc::default(),
        });
        self.last_joined.send_replace(now());
        self.write_config();
        Ok(name)
    }

    pub(super) fn remove_member(&mut self, name: &str, task_id: &str) {
        if self.member_by_task(name, task_id).is_some() {
            self.members.retain(|member| member.spec.name != name);
            self.write_config();
        }
    }

    fn write_config(&self) {
        let Some(writer) = &self.writer else { return };
        let lead = format!("{LEAD}@{}", self.name);
        let mut members = vec![
            json!({"agentId": lead, "name": LEAD, "agentType": LEAD, "joinedAt": self.created_at, "subscriptions": []}),
        ];
        members.extend(self.members.iter().map(|member| {
            let MemberSpec { name, task_id, agent_type, model, prompt, cwd } = &member.spec;
            json!({
                "agentId": format!("{name}@{}", self.name), "name": name, "agentType": agent_type, "model": model,
                "prompt": prompt, "color": member.color, "planModeRequired": member.required_plan.is_some(), "joinedAt": member.joined_at,
                "cwd": cwd, "subscriptions": [], "backendType": "in-process", "taskId": task_id,
            })
        }));
        let config = json!({
            "name": self.name, "description": self.description, "createdAt": self.created_at,
            "leadAgentId": lead, "leadSessionId": self.session_id, "members": members,
        });
        writer.set_config(config);
    }
}

fn now() -> Instant {
    Instant::from_std(clock::monotonic())
}
