//! A host for tests: starts an engine on a script and exchanges frames with it. Every wait has a timeout, so that a
//! test cannot hang.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use whimbrel_testkit::{Host, Reply};
//!
//! let mut host = Host::with_script([Reply::text("Hello.")]).start().await.unwrap();
//! let result = host.run("Say hello.").await.unwrap();
//! assert_eq!(result.result.as_deref(), Some("Hello."));
//! assert!(host.model_requests()[0].contains_text("Say hello."));
//! assert_eq!(host.finish().await.unwrap().code, 0);
//! # })
//! ```
//!
//! The host reads frames only while a test waits for something; it answers control requests of the engine then.

mod builder;
mod connection;
mod model_backend;
mod request_handler;

use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use serde_json::{Value, json};
use whimbrel_wire::Frame;
use whimbrel_wire::content::Content;
use whimbrel_wire::control::{Response, TypedRequest};
use whimbrel_wire::message::{TurnResult, User};

use crate::http_mock::MockApi;
use crate::pattern::matches_pattern;
use crate::script::{ModelRequest, Script};
use crate::test_dirs::TestDirs;

pub use builder::HostBuilder;
pub use connection::{EngineExit, ReceivedFrame};
pub use request_handler::HostResponse;

use connection::EngineConnection;
use model_backend::ModelBackend;
use request_handler::RequestHandler;

/// A host connected to one engine.
pub struct Host {
    parts: HostParts,
    received: Vec<ReceivedFrame>,
    /// Index of the first frame not yet returned by a wait.
    cursor: usize,
    /// Number of control requests sent; makes their ids.
    requests_sent: usize,
    output_closed: bool,
}

pub(crate) struct HostParts {
    connection: EngineConnection,
    dirs: TestDirs,
    backend: ModelBackend,
    request_handler: RequestHandler,
    timeout: Duration,
}

impl Host {
    /// Builds a host for an engine whose model follows this script.
    pub fn with_script(script: impl Into<Script>) -> HostBuilder {
        HostBuilder::new(script.into())
    }

    pub(crate) fn new(parts: HostParts) -> Self {
        Self { parts, received: Vec::new(), cursor: 0, requests_sent: 0, output_closed: false }
    }

    /// Sends a prompt.
    pub async fn send_prompt(&mut self, prompt: impl Into<Content>) -> anyhow::Result<()> {
        self.send_frame(User::prompt(prompt)).await
    }

    /// Sends a prompt and waits for the result.
    pub async fn run(&mut self, prompt: impl Into<Content>) -> anyhow::Result<TurnResult> {
        self.send_prompt(prompt).await?;
        self.next_result().await
    }

    /// Sends a frame.
    pub async fn send_frame(&mut self, frame: impl Into<Frame>) -> anyhow::Result<()> {
        let line = serde_json::to_string(&frame.into())?;
        self.send_line(&line).await
    }

    /// Sends a line unchanged, whether it is a valid frame or not.
    pub async fn send_line(&mut self, line: &str) -> anyhow::Result<()> {
        let sending = self.parts.connection.send_line(line);
        tokio::time::timeout(self.parts.timeout, sending)
            .await
            .context("the engine does not read its input")?
    }

    /// Sends a control request and waits for its response.
    pub async fn send_request<A: TypedRequest>(&mut self, request: A) -> anyhow::Result<A::Reply> {
        let response = self.send_raw_request(serde_json::to_value(request.into())?).await?;
        Ok(response.parse_reply::<A>()?)
    }

    /// Sends a control request given as JSON with its `subtype`, and waits for the response, success or error.
    pub async fn send_raw_request(&mut self, request: Value) -> anyhow::Result<Response> {
        self.requests_sent += 1;
        let request_id = format!("host_{}", self.requests_sent);
        let from = self.received.len();
        let line = json!({"type": "control_request", "request_id": request_id, "request": request});
        self.send_line(&line.to_string()).await?;
        let is_response = |received: &ReceivedFrame| match &received.frame {
            Frame::ControlResponse(response) => response.response.request_id() == request_id,
            _ => false,
        };
        let index = self.find_frame(from, &format!("a response to {request}"), is_response).await?;
        match &self.received[index].frame {
            Frame::ControlResponse(response) => Ok(response.response.clone()),
            other => Err(anyhow!("expected a control response, got {}", other.kind())),
        }
    }

    /// Waits for the next frame that satisfies `matches`. Each wait starts after the frame that the previous wait
    /// returned.
    pub async fn next_frame(&mut self, matches: impl Fn(&Frame) -> bool) -> anyhow::Result<&Frame> {
        let index = self.find_frame(self.cursor, "a frame", |received| matches(&received.frame)).await?;
        self.cursor = index + 1;
        Ok(&self.received[index].frame)
    }

    /// Waits for the next frame that [matches](matches_pattern) the pattern, after the one that the previous wait
    /// returned.
    pub async fn next_matching(&mut self, pattern: &Value) -> anyhow::Result<&Value> {
        let index = self
            .find_frame(self.cursor, &pattern.to_string(), |received| {
                matches_pattern(&received.json, pattern)
            })
            .await?;
        self.cursor = index + 1;
        Ok(&self.received[index].json)
    }

    /// Waits for the first frame of the whole run that satisfies `matches`.
    pub(crate) async fn first_matching(
        &mut self,
        description: &str,
        matches: impl Fn(&Value) -> bool,
    ) -> anyhow::Result<&Value> {
        let index = self.find_frame(0, description, |received| matches(&received.json)).await?;
        Ok(&self.received[index].json)
    }

    /// Waits for the next result.
    pub async fn next_result(&mut self) -> anyhow::Result<TurnResult> {
        match self.next_frame(|frame| matches!(frame, Frame::Result(_))).await? {
            Frame::Result(result) => Ok((**result).clone()),
            other => Err(anyhow!("expected a result, got {}", other.kind())),
        }
    }

    /// Every frame so far.
    pub fn frames(&self) -> impl Iterator<Item = &Frame> {
        self.received.iter().map(|received| &received.frame)
    }

    /// Every frame so far, with its JSON.
    pub fn received(&self) -> &[ReceivedFrame] {
        &self.received
    }

    /// The `init` frame of the last turn.
    pub fn init_frame(&self) -> anyhow::Result<&Value> {
        self.system_frames("init").pop().context("the engine sent no init frame")
    }

    /// The system frames of this subtype so far.
    pub fn system_frames(&self, subtype: &str) -> Vec<&Value> {
        let frames = self.received.iter().map(|received| &received.json);
        frames.filter(|frame| frame["type"] == "system" && frame["subtype"] == subtype).collect()
    }

    /// The texts of the informational frames so far.
    pub fn info_texts(&self) -> Vec<&str> {
        let frames = self.system_frames("informational").into_iter();
        frames.filter_map(|frame| frame["content"].as_str()).collect()
    }

    /// The permission requests (`can_use_tool`) so far.
    pub fn permission_requests(&self) -> Vec<&Value> {
        let requests = self.received.iter().map(|received| &received.json["request"]);
        requests.filter(|request| request["subtype"] == "can_use_tool").collect()
    }

    /// The requests to the model so far; empty if the script plays in another process.
    pub fn model_requests(&self) -> Vec<ModelRequest> {
        self.parts.backend.model_requests()
    }

    /// The HTTP mock, if the script plays over HTTP.
    pub fn api(&self) -> Option<&MockApi> {
        match &self.parts.backend {
            ModelBackend::Http(api) => Some(api),
            ModelBackend::Scripted(_) | ModelBackend::ScriptedInEngine => None,
        }
    }

    /// The directories of this run.
    pub fn dirs(&self) -> &TestDirs {
        &self.parts.dirs
    }

    /// Closes the input. The engine finishes the work that it has.
    pub fn finish_input(&mut self) {
        self.parts.connection.finish_input();
    }

    /// Closes the input, reads all remaining frames and returns how the engine exited.
    pub async fn finish(&mut self) -> anyhow::Result<EngineExit> {
        self.finish_input();
        let timeout = self.parts.timeout;
        let rest = async {
            while self.receive_next().await? {}
            self.parts.connection.wait_for_exit().await
        };
        match tokio::time::timeout(timeout, rest).await {
            Ok(exit) => exit,
            Err(_) => bail!("the engine did not exit within {timeout:?}; {}", self.describe_received()),
        }
    }

    /// Finds a frame at or after index `from`, reading more frames until there is one; returns its index.
    async fn find_frame(
        &mut self,
        from: usize,
        description: &str,
        matches: impl Fn(&ReceivedFrame) -> bool,
    ) -> anyhow::Result<usize> {
        let timeout = self.parts.timeout;
        let search = async {
            let mut start = from;
            loop {
                if let Some(offset) = self.received[start..].iter().position(&matches) {
                    return anyhow::Ok(Some(start + offset));
                }
                start = self.received.len();
                if !self.receive_next().await? {
                    return Ok(None);
                }
            }
        };
        match tokio::time::timeout(timeout, search).await {
            Ok(Ok(Some(index))) => Ok(index),
            Ok(Ok(None)) => bail!("the engine exited without {description}; {}", self.describe_received()),
            Ok(Err(error)) => Err(error),
            Err(_) => bail!("did not receive {description} within {timeout:?}; {}", self.describe_received()),
        }
    }

    /// Receives one frame and responds if it is a control request. Returns false once the engine closed its output.
    async fn receive_next(&mut self) -> anyhow::Result<bool> {
        if self.output_closed {
            return Ok(false);
        }
        let Some(received) = self.parts.connection.receive().await? else {
            self.output_closed = true;
            return Ok(false);
        };
        let response = match &received.frame {
            Frame::ControlRequest(control_request) => {
                let response = (self.parts.request_handler)(&control_request.request);
                response.into_control_response(&control_request.request_id)
            }
            _ => None,
        };
        self.received.push(received);
        if let Some(response) = response {
            let line = serde_json::to_string(&Frame::from(response))?;
            // An engine that is shutting down does not need the response.
            let _ = self.parts.connection.send_line(&line).await;
        }
        Ok(true)
    }

    /// Summarizes the received frames for an error text.
    fn describe_received(&self) -> String {
        let shorten =
            |received: &ReceivedFrame| received.json.to_string().chars().take(300).collect::<String>();
        let lines: Vec<String> = self.received.iter().map(shorten).collect();
        format!("received {} frames:\n{}", lines.len(), lines.join("\n"))
    }
}
