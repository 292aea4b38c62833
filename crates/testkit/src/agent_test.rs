//! Tests of an agent of the Rust SDK, with its own tools, hooks and callbacks: a scripted model plays the replies, and what
//! happened is asserted. Behind the feature `sdk`.

use serde_json::Value;
use whimbrel::wire::message::Denial;
use whimbrel::{Agent, Answer, Event, Scripted, Session, ToolEnd, ToolStart, TurnError};

/// A session of an agent whose model is scripted.
///
/// ```
/// use serde_json::json;
/// use whimbrel::{Agent, ToolServer, tool};
/// use whimbrel_testkit::agent_test::AgentTest;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let clock = tool("now", "Tells the time", || async { "noon" });
/// let agent = Agent::new().tool_server(ToolServer::new("clock").tool(clock)).allowed_tools(["mcp__clock"]);
/// let call = json!([{"type": "tool_use", "name": "mcp__clock__now", "input": {}}]);
/// let mut test = AgentTest::open(&agent, json!([call, "It is noon."])).await?;
/// test.ask("What time is it?").await.says("It is noon.").called("mcp__clock__now", 1).denied_nothing();
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct AgentTest {
    session: Session,
}

/// What happened in a turn. Its assertions panic with what was seen instead.
#[derive(Debug)]
pub struct ObservedTurn {
    /// The answer, or why there is none.
    pub answer: Result<Answer, TurnError>,
    /// Calls that began, in order, those of subagents included.
    pub calls: Vec<ToolStart>,
    /// Calls that ended.
    pub results: Vec<ToolEnd>,
    /// Warnings to the host.
    pub warnings: Vec<String>,
}

impl AgentTest {
    /// Opens a session of the agent with a scripted model; see [`Scripted::replies`] for the form of the replies. The
    /// session is not stored.
    pub async fn open(agent: &Agent, replies: Value) -> anyhow::Result<Self> {
        let script = Scripted::replies(replies)?;
        let agent = agent.clone().persist_session(false).script(script);
        Ok(Self { session: Session::open(&agent).await? })
    }

    /// Asks the agent and observes the turn.
    pub async fn ask(&mut self, prompt: &str) -> ObservedTurn {
        let (mut calls, mut results, mut warnings) = (Vec::new(), Vec::new(), Vec::new());
        let mut answer = None;
        let mut events = self.session.ask(prompt).events();
        while let Some(event) = events.next().await {
            match event.map(innermost) {
                Ok(Event::ToolStarted(call)) => calls.push(call),
                Ok(Event::ToolEnded(end)) => results.push(end),
                Ok(Event::Warning(text)) => warnings.push(text),
                Ok(Event::Done(done)) => answer = Some(Ok(done)),
                Ok(_) => {}
                Err(error) => answer = Some(Err(error)),
            }
        }
        let answer = answer.unwrap_or(Err(TurnError::Session(whimbrel::Error::SessionEnded)));
        ObservedTurn { answer, calls, results, warnings }
    }

    /// The session, for what this type has no method for.
    pub fn session(&mut self) -> &mut Session {
        &mut self.session
    }
}

/// The event itself, if it is that of a subagent or from before the turn.
fn innermost(event: Event) -> Event {
    match event {
        Event::Subagent { event, .. } | Event::BeforeTurn(event) => innermost(*event),
        event => event,
    }
}

impl ObservedTurn {
    /// Asserts that the answer is this text.
    #[track_caller]
    pub fn says(&self, text: &str) -> &Self {
        match &self.answer {
            Ok(answer) => assert_eq!(answer.text(), text),
            Err(error) => panic!("there is no answer: {error}"),
        }
        self
    }

    /// Asserts how often a tool was called.
    #[track_caller]
    pub fn called(&self, tool: &str, times: usize) -> &Self {
        let names: Vec<&str> = self.calls.iter().map(|call| call.name.as_str()).collect();
        let count = names.iter().filter(|name| **name == tool).count();
        assert_eq!(count, times, "calls of {tool}; all calls: {names:?}");
        self
    }

    /// Asserts that every call was permitted.
    #[track_caller]
    pub fn denied_nothing(&self) -> &Self {
        let denied: Vec<&str> = self.denials().iter().map(|denial| denial.tool_name.as_str()).collect();
        assert!(denied.is_empty(), "denied: {denied:?}");
        self
    }

    /// Asserts that a call of this tool was denied.
    #[track_caller]
    pub fn denied(&self, tool: &str) -> &Self {
        let denied: Vec<&str> = self.denials().iter().map(|denial| denial.tool_name.as_str()).collect();
        assert!(denied.contains(&tool), "{tool} was not denied; denied: {denied:?}");
        self
    }

    /// Asserts that there was a warning with this text in it.
    #[track_caller]
    pub fn warned_of(&self, text: &str) -> &Self {
        let is_found = self.warnings.iter().any(|warning| warning.contains(text));
        assert!(is_found, "no warning says {text:?}; warnings: {:?}", self.warnings);
        self
    }

    /// Asserts that there was no warning.
    #[track_caller]
    pub fn warned_of_nothing(&self) -> &Self {
        assert!(self.warnings.is_empty(), "warnings: {:?}", self.warnings);
        self
    }

    fn denials(&self) -> &[Denial] {
        match &self.answer {
            Ok(answer) => answer.denials(),
            Err(error) => error.result().map_or(&[], |result| &result.permission_denials),
        }
    }
}
