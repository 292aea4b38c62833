//! The tools, one leaf file each, and the list of them.
//!
//! A leaf has an input type whose doc comments are what the model reads, a word on what it touches, `run`, and
//! examples that are documentation and test at once. To add a tool: write the leaf, add it to [`all`].

mod agent;
mod ask_user_question;
mod bash;
mod checkpoint;
mod cron_create;
mod cron_delete;
mod cron_list;
mod edit;
mod encoding;
mod enter_plan_mode;
mod enter_worktree;
mod example;
mod exit_plan_mode;
mod exit_worktree;
mod fault;
mod glob;
mod grep;
mod lenient;
mod list_agents;
mod monitor;
mod notebook_edit;
pub(crate) mod patch;
mod read;
mod schedule_wakeup;
mod send_message;
#[cfg(test)]
mod swapped;
mod target;
mod task_create;
mod task_get;
mod task_list;
mod task_output;
mod task_stop;
mod task_update;
mod team_create;
mod team_delete;
mod todo_write;
mod tool_search;
mod touches;
mod walk;
mod web_fetch;
mod web_search;
mod write;

use std::pin::Pin;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use whimbrel_models::ToolSpec;
use whimbrel_policy::Place;
use whimbrel_wire::RawJson;
use whimbrel_wire::content::ResultContent;
use whimbrel_wire::permission::McpServerProvenance;

use crate::agenda::{Agenda, Todos};
use crate::agents::Agents;
use crate::consult::Consult;
use crate::hooks::Lookout;
use crate::on_demand::{Offer, OnDemand};
use crate::permission::{ModeSwitch, Sight};
use crate::tasks::Tasks;
use crate::toolbox::Toolbox;
use crate::workspace::Workspace;

pub(crate) use agent::{came_to_nothing, works_beside};
pub use example::Example;
pub(crate) use read::picture;
pub use touches::Touches;

/// The name of the tool that starts subagents.
pub const AGENT: &str = "Agent";

/// The name of the tool that writes to other agents.
pub const SEND_MESSAGE: &str = "SendMessage";

/// The name of the tool that founds a team.
pub const TEAM_CREATE: &str = "TeamCreate";

/// The name of the tool that dissolves it.
pub const TEAM_DELETE: &str = "TeamDelete";

/// The name of the tool that asks the person something.
pub const ASK_USER_QUESTION: &str = "AskUserQuestion";

/// The name of the tool that begins plan mode.
pub const ENTER_PLAN_MODE: &str = "EnterPlanMode";

/// The name of the tool that asks for the approval of a plan.
pub const EXIT_PLAN_MODE: &str = "ExitPlanMode";

/// The name of the tool that loads skills.
pub const SKILL: &str = "Skill";
/// The name of the tool that loads others.
pub const TOOL_SEARCH: &str = "ToolSearch";

/// The names of the tools for the list of tasks.
pub const TASK_CREATE: &str = "TaskCreate";
/// Shows one of them.
pub const TASK_GET: &str = "TaskGet";
/// Shows all of them.
pub const TASK_LIST: &str = "TaskList";
/// Changes one of them.
pub const TASK_UPDATE: &str = "TaskUpdate";

/// The name of the tool for a list that an agent keeps for itself.
pub const TODO_WRITE: &str = "TodoWrite";

/// One tool.
pub trait Tool: Send + Sync + 'static {
    /// What the model fills in. The doc comments of its fields are what the model reads about them.
    type Input: DeserializeOwned + JsonSchema + Send;

    /// The name on the wire.
    const NAME: &'static str;

    /// Older names under which the model or a rule may still call it.
    const ALIASES: &'static [&'static str] = &[];

    /// What the model reads about the tool.
    const DESCRIPTION: &'static str;

    /// With whom it deals. What deals with a person is offered to the main agent only, and only where one can be asked.
    const DEALS_WITH: DealsWith = DealsWith::Machines;

    /// How it comes to the model.
    const OFFER: Offer = Offer::AtOnce;

    /// What a call with this input touches: decides what may run beside it and whether a permission is needed.
    fn touches(input: &Self::Input) -> Touches;

    /// Whether a call with this input puts rules in force that allow something.
    fn brings_grants(&self, _input: &Self::Input) -> bool {
        false
    }

    /// Does the work. Dropping the future must leave nothing running.
    fn run(&self, input: Self::Input, call: Call) -> impl Future<Output = Output> + Send;

    /// Calls that show what the tool does.
    fn examples() -> Vec<Example>;
}

/// With whom a tool deals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DealsWith {
    /// With files, programs, servers.
    Machines,
    /// With the person behind the host.
    Person,
    /// With the session itself: where it works, what comes later. Offered to the main agent only.
    Session,
}

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
    /// Starts subagents; a subagent has none of its own.
    pub agents: Option<Agents>,
    /// Turns the mode of the session.
    pub mode: ModeSwitch,
    /// Tells hooks what happens; filled in for each call.
    pub lookout: Lookout,
    /// Fires when the turn is interrupted or the session ends.
    pub cancel: CancellationToken,
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
            toolbox: Arc::new(Toolbox::of(all())),
            on_demand: OnDemand::default(),
            agenda: Agenda::default(),
            todos: Todos::default(),
            sight: Sight::default(),
            consult: Consult::nobody(),
            agents: None,
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

/// A tool whose input type is hidden, so that tools of all kinds can stand in one list.
pub trait AnyTool: Send + Sync {
    /// The name on the wire.
    fn name(&self) -> &str;
    /// Older names.
    fn aliases(&self) -> &[&str];
    /// The tool as the model sees it.
    fn spec(&self) -> ToolSpec;
    /// With whom it deals.
    fn deals_with(&self) -> DealsWith {
        DealsWith::Machines
    }
    /// How it comes to the model.
    fn offer(&self) -> Offer {
        if self.server().is_some() { Offer::IfRoom } else { Offer::AtOnce }
    }
    /// What a call with this input touches; an error if the input does not fit.
    fn touches(&self, input: &Value) -> Result<Touches, Trouble>;
    /// Checks the input and does the work.
    fn run<'a>(&'a self, input: Value, call: Call) -> Pin<Box<dyn Future<Output = Output> + Send + 'a>>;
    /// Calls that show what the tool does.
    fn examples(&self) -> Vec<Example>;
    /// The MCP server that it belongs to, as it stands in the tool's name.
    fn server(&self) -> Option<&str> {
        None
    }
    /// The same server, as hosts and hooks are told of it.
    fn provenance(&self) -> Option<McpServerProvenance> {
        None
    }
    /// Whether a call with this input puts rules in force that allow something.
    fn brings_grants(&self, _input: &Value) -> bool {
        false
    }
    /// Whether only a person can answer it.
    fn needs_person(&self) -> bool {
        false
    }
}

impl<T: Tool> AnyTool for T {
    fn name(&self) -> &str {
        T::NAME
    }

    fn aliases(&self) -> &[&str] {
        T::ALIASES
    }

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: T::NAME.into(),
            description: T::DESCRIPTION.into(),
            input_schema: input_schema::<T::Input>(),
        }
    }

    fn deals_with(&self) -> DealsWith {
        T::DEALS_WITH
    }

    fn offer(&self) -> Offer {
        T::OFFER
    }

    fn touches(&self, input: &Value) -> Result<Touches, Trouble> {
        read_input::<T>(input).map(|input| T::touches(&input))
    }

    fn brings_grants(&self, input: &Value) -> bool {
        read_input::<T>(input).is_ok_and(|input| Tool::brings_grants(self, &input))
    }

    fn run<'a>(&'a self, input: Value, call: Call) -> Pin<Box<dyn Future<Output = Output> + Send + 'a>> {
        Box::pin(async move {
            let input = read_input::<T>(&input)?;
            checkpoint::keep(T::touches(&input), &call.workspace).await;
            Tool::run(self, input, call).await
        })
    }

    fn examples(&self) -> Vec<Example> {
        T::examples()
    }
}

/// The input schema in as few bytes as possible: titles, formats and the schema's own address say nothing to a model.
fn input_schema<T: JsonSchema>() -> RawJson {
    let mut schema = schemars::generate::SchemaSettings::draft2020_12()
        .with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        })
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value();
    prune(&mut schema);
    // Some servers refuse an object without a word on its fields.
    if let Value::Object(fields) = &mut schema {
        fields.entry("properties").or_insert_with(|| Map::new().into());
    }
    RawJson::of(&schema).unwrap_or_else(|_| empty_object())
}

fn empty_object() -> RawJson {
    RawJson::of(&Map::new()).unwrap_or_else(|_| unreachable!("an empty map is JSON"))
}

fn prune(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            let is_schema = fields.contains_key("type") || fields.contains_key("properties");
            if is_schema {
                fields.retain(|key, value| match key.as_str() {
                    "title" | "format" | "minimum" | "default" | "$schema" => false,
                    "description" => value != "",
                    _ => true,
                });
                // An optional field reads `["string", "null"]`; that it may be left out is said by `required`.
                if let Some(Value::Array(kinds)) = fields.get_mut("type") {
                    kinds.retain(|kind| kind != "null");
                    if let [only] = kinds.as_slice() {
                        let only = only.clone();
                        fields.insert("type".into(), only);
                    }
                }
                // The input's own doc comment is for us; the model reads DESCRIPTION.
            }
            fields.values_mut().for_each(prune);
        }
        Value::Array(items) => items.iter_mut().for_each(prune),
        _ => {}
    }
}

/// Reads an input; one that does not fit is refused with the name of the wrong field.
fn read_input<T: Tool>(input: &Value) -> Result<T::Input, Trouble> {
    serde_path_to_error::deserialize(input).map_err(|error| {
        let (field, reason) = (error.path().to_string(), error.inner().to_string());
        let place = if field == "." { String::new() } else { format!("`{field}`: ") };
        Trouble::Refused(format!(
            "InputValidationError: {} cannot be called like this: {place}{reason}.",
            T::NAME
        ))
    })
}

/// The list of built-in tools. One line each; the order is the order in which the model sees them.
pub fn all() -> Vec<Arc<dyn AnyTool>> {
    vec![
        Arc::new(agent::Agent),
        Arc::new(bash::Bash),
        Arc::new(read::Read),
        Arc::new(write::Write),
        Arc::new(edit::Edit),
        Arc::new(glob::Glob),
        Arc::new(grep::Grep),
        Arc::new(notebook_edit::NotebookEdit),
        Arc::new(task_output::TaskOutput),
        Arc::new(task_stop::TaskStop),
        Arc::new(web_fetch::WebFetch::default()),
        Arc::new(ask_user_question::AskUserQuestion),
        Arc::new(enter_plan_mode::EnterPlanMode),
        Arc::new(exit_plan_mode::ExitPlanMode),
        Arc::new(tool_search::ToolSearch),
        Arc::new(enter_worktree::EnterWorktree),
        Arc::new(exit_worktree::ExitWorktree),
        Arc::new(todo_write::TodoWrite),
        Arc::new(task_create::TaskCreate),
        Arc::new(task_get::TaskGet),
        Arc::new(task_list::TaskList),
        Arc::new(task_update::TaskUpdate),
        Arc::new(list_agents::ListAgents),
        Arc::new(web_search::WebSearch),
        Arc::new(monitor::Monitor),
        Arc::new(cron_create::CronCreate),
        Arc::new(cron_delete::CronDelete),
        Arc::new(cron_list::CronList),
        Arc::new(schedule_wakeup::ScheduleWakeup),
    ]
}

/// The tools of a session that may have a team.
pub fn for_teams() -> Vec<Arc<dyn AnyTool>> {
    vec![
        Arc::new(team_create::TeamCreate),
        Arc::new(team_delete::TeamDelete),
        Arc::new(send_message::SendMessage),
    ]
}
