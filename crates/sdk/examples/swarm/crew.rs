//! Who is at work on what, as the frames tell it: notices of tasks say who begins, how far they are and how they end,
//! and `parent_tool_use_id` says whose call a call is.

use serde_json::Value;
use whimbrel::Frame;
use whimbrel::wire::Block;
use whimbrel::wire::system::{SystemEvent, TaskEnd, TaskNotification, TaskProgress, TaskStarted};

/// The leader and everybody that it has sent.
#[derive(Default)]
pub(crate) struct Crew {
    pub(crate) leader: Member,
    pub(crate) members: Vec<Member>,
    total: f64,
}

/// Somebody at work.
#[derive(Default)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) errand: String,
    pub(crate) doing: String,
    pub(crate) tokens: u64,
    pub(crate) end: Option<TaskEnd>,
    task: String,
    /// The call that sent it: what it does carries this id.
    call: String,
    dollars: f64,
}

/// Something that has happened: who, and what.
pub(crate) struct News {
    pub(crate) who: String,
    pub(crate) what: String,
}

impl Crew {
    /// Takes a frame in; gives what is worth a line.
    pub(crate) fn hear(&mut self, frame: &Frame) -> Option<News> {
        match frame {
            Frame::System(system) => match &system.event {
                SystemEvent::TaskStarted(begun) => Some(self.begin(begun)),
                SystemEvent::TaskProgress(progress) => self.go_on(progress),
                SystemEvent::TaskNotification(ended) => self.end(ended),
                _ => None,
            },
            Frame::Assistant(said) => {
                let doing = said.message.content.iter().find_map(doing)?;
                self.does(said.parent_tool_use_id.as_deref(), doing)
            }
            Frame::User(user) => {
                self.pay(user.tool_use_result.as_ref()?);
                None
            }
            Frame::Result(result) => {
                self.total = result.total_cost_usd;
                self.leader.end = Some(if result.is_error { TaskEnd::Failed } else { TaskEnd::Completed });
                Some(News { who: "leader".into(), what: format!("is done: {} turns", result.num_turns) })
            }
            _ => None,
        }
    }

    /// What each has cost. What nobody else has spent is the leader's.
    pub(crate) fn costs(&self) -> Vec<(&str, f64)> {
        let others = self.members.iter().map(|member| (member.name.as_str(), member.dollars));
        let spent: f64 = self.members.iter().map(|member| member.dollars).sum();
        let leader = ("leader", self.total - spent);
        std::iter::once(leader).chain(others).chain([("together", self.total)]).collect()
    }

    fn begin(&mut self, begun: &TaskStarted) -> News {
        let member = Member {
            name: begun.subagent_type.clone().unwrap_or_default(),
            errand: begun.description.clone(),
            doing: "thinks".into(),
            task: begun.task_id.clone(),
            call: begun.tool_use_id.clone().unwrap_or_default(),
            ..Member::default()
        };
        let news = News { who: member.name.clone(), what: format!("begins: {}", member.errand) };
        self.members.push(member);
        news
    }

    /// Its tokens count on; that is seen in a tree, but it is no line of its own.
    fn go_on(&mut self, progress: &TaskProgress) -> Option<News> {
        self.member(|member| member.task == progress.task_id)?.tokens = progress.usage.total_tokens;
        None
    }

    fn end(&mut self, ended: &TaskNotification) -> Option<News> {
        let member = self.member(|member| member.task == ended.task_id)?;
        let usage = ended.usage.clone().unwrap_or_default();
        member.tokens = usage.total_tokens;
        member.end = Some(ended.status.clone());
        member.doing = format!("{} calls, {:.1} s", usage.tool_uses, usage.duration_ms as f64 / 1000.0);
        let word = if ended.status == TaskEnd::Completed { "is done" } else { "could not finish" };
        Some(News {
            who: member.name.clone(),
            what: format!("{word}: {}, {} tokens", member.doing, member.tokens),
        })
    }

    /// Whoever was sent by this call does something; without a call it is the leader.
    fn does(&mut self, call: Option<&str>, what: String) -> Option<News> {
        let (who, doing) = match call {
            None => ("leader".to_owned(), &mut self.leader.doing),
            Some(call) => {
                let member = self.member(|member| member.call == call)?;
                (member.name.clone(), &mut member.doing)
            }
        };
        doing.clone_from(&what);
        Some(News { who, what })
    }

    /// The result of an `Agent` call says what the agent has cost.
    fn pay(&mut self, result: &Value) {
        let (Some(id), Some(dollars)) = (result["agentId"].as_str(), result["costUsd"].as_f64()) else {
            return;
        };
        if let Some(member) = self.member(|member| member.task == id) {
            member.dollars = dollars;
        }
    }

    fn member(&mut self, is_it: impl Fn(&Member) -> bool) -> Option<&mut Member> {
        self.members.iter_mut().find(|member| is_it(member))
    }
}

/// What a block says that somebody does. The leader's calls of agents are seen in the tree.
fn doing(block: &Block) -> Option<String> {
    match block {
        Block::Text { text, .. } => Some(text.clone()),
        Block::ToolUse { name, input, .. } if name != "Agent" => {
            let about = ["file_path", "pattern"].iter().find_map(|field| input[*field].as_str());
            let about = about.and_then(|path| path.rsplit('/').next()).unwrap_or_default();
            Some(format!("{name} {about}"))
        }
        _ => None,
    }
}
