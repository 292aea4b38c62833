//! A small host for tests: starts an engine on a script, talks to it, and waits with a deadline everywhere, so that a test
//! cannot hang.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use whimbrel_testkit::{Host, Reply};
//!
//! let mut host = Host::with([Reply::text("Hello.")]).start().await.unwrap();
//! let result = host.run("Say hello.").await.unwrap();
//! assert_eq!(result.result.as_deref(), Some("Hello."));
//! assert!(host.asked()[0].says("Say hello."));
//! assert_eq!(host.finish().await.unwrap().code, 0);
//! # })
//! ```
//!
//! The host hears the engine only while a test waits for something; questions of the engine are answered then.

mod request_handler;
mod builder;
mod connection;
mod backend;

use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use serde_json::{Value, json};
use whimbrel_wire::Frame;
use whimbrel_wire::content::Content;
use whimbrel_wire::control::{TypedRequest, Response};
use whimbrel_wire::message::{TurnResult, User};

use crate::http_mock::MockApi;
use crate::pattern::matches_pattern;
use crate::script::{ModelRequest, Script};
use crate::test_dirs::TestDirs;

pub use request_handler::HostResponse;
pub use builder::HostBuilder;
pub use connection::{EngineExit, ReceivedFrame};

use request_handler::RequestHandler;
use connection::EngineConnection;
use backend::ModelBackend;

/// A host that talks to one engine.
pub struct Host {
    parts: HostParts,
    received: Vec<ReceivedFrame>,
    /// Up to where frames have been waited for.
    cursor: usize,
    /// How many questions have been asked.
    asked: usize,
    output_closed: bool,
}

/// What a host is made of.
pub(crate) struct HostParts {
    connection: EngineConnection,
    dirs: TestDirs,
    backend: ModelBackend,
    request_handler: RequestHandler,
    timeout: Duration,
}

impl Host {
    /// A host for an engine whose model follows this script.
    pub fn with_script(script: impl Into<Script>) -> HostBuilder {
        HostBuilder::new(script.into())
    }

    pub(crate) fn new(parts: HostParts) -> Self {
        Self { parts, received: Vec::new(), cursor: 0, asked: 0, output_closed: false }
    }

    /// Says something to the agent.
    pub async fn send_prompt(&mut self, prompt: impl Into<Content>) -> anyhow::Result<()> {
        self.send_frame(User::prompt(prompt)).await
    }

    /// Says something and waits for the result.
    pub async fn run(&mut self, prompt: impl Into<Content>) -> anyhow::Result<TurnResult> {
        self.send_prompt(prompt).await?;
        self.next_result().await
    }

    /// Sends a frame.
    pub async fn send_frame(&mut self, frame: impl Into<Frame>) -> anyhow::Result<()> {
        let line = serde_json::to_string(&frame.into())?;
        self.send_line(&line).await
    }

    /// Sends a line as it is, whether it is a frame or not.
    pub async fn send_line(&mut self, line: &str) -> anyhow::Result<()> {
        let sending = self.parts.connection.send_line(line);
        tokio::time::timeout(self.parts.timeout, sending).await.context("the engine does not read")?
    }

    /// Asks the engine something and waits for its answer.
    pub async fn send_request<A: TypedRequest>(&mut self, question: A) -> anyhow::Result<A::Reply> {
        let response = self.send_raw_request(serde_json::to_value(question.into())?).await?;
        Ok(response.parse_reply::<A>()?)
    }

    /// Asks the engine something, given as JSON with its `subtype`, and waits for the answer, whatever it is.
    pub async fn send_raw_request(&mut self, question: Value) -> anyhow::Result<Response> {
        self.asked += 1;
        let request_id = format!("host_{}", self.asked);
        let from = self.received.len();
        let line = json!({"type": "control_request", "request_id": request_id, "request": question});
        self.send_line(&line.to_string()).await?;
        let is_answer = |heard: &ReceivedFrame| match &heard.frame {
            Frame::ControlResponse(answer) => answer.response.request_id() == request_id,
            _ => false,
        };
        let at = self.find_frame(from, &format!("an answer to {question}"), is_answer).await?;
        match &self.received[at].frame {
            Frame::ControlResponse(answer) => Ok(answer.response.clone()),
            other => Err(anyhow!("a {} is no answer", other.kind())),
        }
    }

    /// The next frame that fits, among those after the last one that was waited for.
    pub async fn next_frame(&mut self, fits: impl Fn(&Frame) -> bool) -> anyhow::Result<&Frame> {
        let at = self.find_frame(self.cursor, "a frame", |heard| fits(&heard.frame)).await?;
        self.cursor = at + 1;
        Ok(&self.received[at].frame)
    }

    /// The next frame that [looks like](looks_like) this, among those after the last one that was waited for.
    pub async fn next_matching(&mut self, pattern: &Value) -> anyhow::Result<&Value> {
        let at = self.find_frame(self.cursor, &pattern.to_string(), |heard| matches_pattern(&heard.json, pattern)).await?;
        self.cursor = at + 1;
        Ok(&self.received[at].json)
    }

    /// The first frame of all that fits, waited for or not.
    pub(crate) async fn first_matching(
        &mut self,
        what: &str,
        fits: impl Fn(&Value) -> bool,
    ) -> anyhow::Result<&Value> {
        let at = self.find_frame(0, what, |heard| fits(&heard.json)).await?;
        Ok(&self.received[at].json)
    }

    /// The next result.
    pub async fn next_result(&mut self) -> anyhow::Result<TurnResult> {
        match self.next_frame(|frame| matches!(frame, Frame::Result(_))).await? {
            Frame::Result(result) => Ok((**result).clone()),
            other => Err(anyhow!("a {} is no result", other.kind())),
        }
    }

    /// Every frame so far.
    pub fn frames(&self) -> impl Iterator<Item = &Frame> {
        self.received.iter().map(|heard| &heard.frame)
    }

    /// Every line so far, with its JSON.
    pub fn received(&self) -> &[ReceivedFrame] {
        &self.received
    }

    /// The questions about tool calls that the host was asked so far, as they came.
    pub fn permission_requests(&self) -> Vec<&Value> {
        let requests = self.received.iter().map(|heard| &heard.json["request"]);
        requests.filter(|request| request["subtype"] == "can_use_tool").collect()
    }

    /// What the model has been asked so far. A script in another process cannot tell.
    pub fn model_requests(&self) -> Vec<ModelRequest> {
        self.parts.backend.model_requests()
    }

    /// The mock, if the script is played over HTTP.
    pub fn api(&self) -> Option<&MockApi> {
        match &self.parts.backend {
            ModelBackend::Http(api) => Some(api),
            ModelBackend::Scripted(_) | ModelBackend::ScriptedInEngine => None,
        }
    }

    /// The folders of this run.
    pub fn dirs(&self) -> &TestDirs {
        &self.parts.dirs
    }

    /// Finishes the input: nothing more will be said. The engine goes on with what it has.
    pub fn finish_input(&mut self) {
        self.parts.connection.finish_input();
    }

    /// Finishes the input, hears the engine out and tells how it ended.
    pub async fn finish(&mut self) -> anyhow::Result<EngineExit> {
        self.finish_input();
        let deadline = self.parts.timeout;
        let rest = async {
            while self.receive_next().await? {}
            self.parts.connection.wait_for_exit().await
        };
        match tokio::time::timeout(deadline, rest).await {
            Ok(exit) => exit,
            Err(_) => bail!("the engine did not end within {deadline:?}; {}", self.describe_received()),
        }
    }

    /// Finds a frame from a place on, hearing more as long as there is none. Gives its index.
    async fn find_frame(
        &mut self,
        from: usize,
        what: &str,
        fits: impl Fn(&ReceivedFrame) -> bool,
    ) -> anyhow::Result<usize> {
        let deadline = self.parts.timeout;
        let search = async {
            let mut at = from;
            loop {
                if let Some(found) = self.received[at..].iter().position(&fits) {
                    return anyhow::Ok(Some(at + found));
                }
                at = self.received.len();
                if !self.receive_next().await? {
                    return Ok(None);
                }
            }
        };
        match tokio::time::timeout(deadline, search).await {
            Ok(Ok(Some(at))) => Ok(at),
            Ok(Ok(None)) => bail!("the engine ended without {what}; {}", self.describe_received()),
            Ok(Err(error)) => Err(error),
            Err(_) => bail!("no {what} within {deadline:?}; {}", self.describe_received()),
        }
    }

    /// Hears one more line and answers it if it is a question. False once the engine has said everything.
    async fn receive_next(&mut self) -> anyhow::Result<bool> {
        if self.output_closed {
            return Ok(false);
        }
        let Some(heard) = self.parts.connection.receive().await? else {
            self.output_closed = true;
            return Ok(false);
        };
        let response = match &heard.frame {
            Frame::ControlRequest(asked) => (self.parts.request_handler)(&asked.request).into_control_response(&asked.request_id),
            _ => None,
        };
        self.received.push(heard);
        if let Some(response) = response {
            let line = serde_json::to_string(&Frame::from(response))?;
            // An engine that has stopped listening does not need the answer.
            let _ = self.parts.connection.send_line(&line).await;
        }
        Ok(true)
    }

    /// What was heard, in short, for an error text.
    fn describe_received(&self) -> String {
        let brief = |heard: &ReceivedFrame| heard.json.to_string().chars().take(300).collect::<String>();
        let lines: Vec<String> = self.received.iter().map(brief).collect();
        format!("it said {} lines:\n{}", lines.len(), lines.join("\n"))
    }
}
