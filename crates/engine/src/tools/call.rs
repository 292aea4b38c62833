//! One call of a tool: what surrounds it, and how it ends.

use std::sync::Arc;

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use whimbrel_models::{Fault, FaultKind};
use whimbrel_policy::Place;
use whimbrel_wire::content::ResultContent;

use crate::agenda::{Agenda, Todos};
use crate::agents::Agents;
use crate::consult::Consult;
use crate::hooks::Lookout;
use crate::on_demand::OnDemand;
use crate::permission::{ModeSwitch, Sight};
use crate::session::Journal;
#[cfg(test)]
use crate::session::Mirror;
use crate::tasks::{Reach, Start, Tasks};
use crate::toolbox::Toolbox;
use crate::workspace::Workspace;

/// What surrounds one call.
#[derive(Clone)]
pub struct Call {
    /// The id of the call.
    pub id: String,
    /// The file that the call was judged by, if it is about one.
    pub place: Option<Place>,
    /// What the model wrote, where the host or a hook has changed the input since.
    pub written: Option<Arc<Value>>,
    /// Where the session works.
    pub workspace: Arc<Workspace>,
    /// The background work of the session.
    pub tasks: Tasks,
    /// The tools of the agent; filled in for each call.
    pub toolbox: Arc<Toolbox>,
    /// Which of them it has been shown.
    pub on_demand: OnDemand,
    /// What may be read; taken anew for each call.
    pub sight: Sight,
    /// The list of tasks of the session or its team.
    pub agenda: Agenda,
    /// What the agent wants to do.
    pub todos: Todos,
    /// A small model to ask.
    pub consult: Consult,
    /// Starts other agents, and reaches them; none if this one may do neither.
    pub agents: Option<Agents>,
    /// Turns the mode of the session.
    pub mode: ModeSwitch,
    /// Tells hooks what happens; filled in for each call.
    pub lookout: Lookout,
    /// Where the start of a call with effects is recorded before it is made, and which agent makes it.
    pub journal: Journal,
    /// Fires when the turn is interrupted or the session ends.
    pub cancel: CancellationToken,
}

impl Call {
    /// What background work is told of this call, which starts it.
    pub(crate) fn start(&self, description: String) -> Start {
        Start { tool_use_id: self.id.clone(), owner: self.lookout.agent_id().map(Into::into), description }
    }

    /// The background work that the agent reaches.
    pub(crate) fn reach(&self) -> Reach<'_> {
        Reach::of_agent(self.lookout.agent_id())
    }

    /// The name of the teammate that makes it, if it is one.
    pub(crate) fn teammate(&self) -> Option<String> {
        self.agents.as_ref().filter(|agents| agents.is_mate()).map(|agents| agents.name().to_owned())
    }

    /// The team of the session, if it has one.
    pub(crate) fn team(&self) -> Option<String> {
        self.agents.as_ref().and_then(|agents| agents.teams().name())
    }

    /// Notes why a question to a model beside the turn failed. What was interrupted when it was recorded interrupts the turn
    /// again.
    pub(crate) fn note_fault(&self, fault: &Fault) {
        if fault.kind == FaultKind::Interrupted {
            self.cancel.cancel();
        }
    }
}

#[cfg(test)]
impl Call {
    /// A call in a session that has no model, no subagents and all tools.
    pub(crate) fn alone(workspace: Arc<Workspace>) -> Self {
        Self {
            id: "toolu_1".into(),
            place: None,
            written: None,
            mode: ModeSwitch::unheard(&workspace),
            lookout: Lookout::deaf(&workspace),
            workspace,
            tasks: Tasks::new(tokio::sync::mpsc::unbounded_channel().0),
            toolbox: Arc::new(Toolbox::of(super::all())),
            on_demand: OnDemand::default(),
            agenda: Agenda::default(),
            todos: Todos::default(),
            sight: Sight::default(),
            consult: Consult::nobody(),
            agents: None,
            journal: Journal::new("session", None, Mirror::Off),
            cancel: CancellationToken::new(),
        }
    }
}

/// How a call ended.
pub type Output = Result<Done, Trouble>;

/// A call that did its work.
#[derive(Debug, Clone, PartialEq)]
pub struct Done {
    /// What the model reads.
    pub content: ResultContent,
    /// What the host gets beside it (`tool_use_result`).
    pub meta: Value,
}

/// A call that did not. The text is for the model: what is wrong and what to do instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// The call makes no sense; nothing was done.
    Refused(String),
    /// The work was begun and failed.
    Failed(String),
    /// Somebody ended the whole turn from within the call.
    Stopped(String),
}

impl Done {
    /// A text for the model and a structure for the host.
    pub fn text(text: impl Into<String>, meta: Value) -> Self {
        Self { content: ResultContent::Text(text.into()), meta }
    }
}

impl Trouble {
    /// The text as the model reads it.
    pub fn for_model(&self) -> String {
        match self {
            Self::Refused(text) => format!("<tool_use_error>{text}</tool_use_error>"),
            Self::Failed(text) | Self::Stopped(text) => text.clone(),
        }
    }

    /// The bare text.
    pub fn reason(&self) -> &str {
        match self {
            Self::Refused(text) | Self::Failed(text) | Self::Stopped(text) => text,
        }
    }
}
