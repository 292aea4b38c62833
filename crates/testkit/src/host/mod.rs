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

mod answers;
mod builder;
mod connection;
mod voice;

use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use serde_json::{Value, json};
use whimbrel_wire::Frame;
use whimbrel_wire::content::Content;
use whimbrel_wire::control::{Ask, Response};
use whimbrel_wire::message::{TurnResult, User};

use crate::http_mock::MockApi;
use crate::pattern::looks_like;
use crate::script::{Asked, Script};
use crate::stage::Stage;

pub use answers::Answer;
pub use builder::HostBuilder;
pub use connection::{Exit, Heard};

use answers::Answers;
use connection::Connection;
use voice::Voice;

/// A host that talks to one engine.
pub struct Host {
    parts: Parts,
    heard: Vec<Heard>,
    /// Up to where frames have been waited for.
    seen: usize,
    /// How many questions have been asked.
    asked: usize,
    ended: bool,
}

/// What a host is made of.
pub(crate) struct Parts {
    connection: Connection,
    stage: Stage,
    voice: Voice,
    answers: Answers,
    deadline: Duration,
}

impl Host {
    /// A host for an engine whose model follows this script.
    pub fn with(script: impl Into<Script>) -> HostBuilder {
        HostBuilder::new(script.into())
    }

    pub(crate) fn new(parts: Parts) -> Self {
        Self { parts, heard: Vec::new(), seen: 0, asked: 0, ended: false }
    }

    /// Says something to the agent.
    pub async fn say(&mut self, prompt: impl Into<Content>) -> anyhow::Result<()> {
        self.send(User::prompt(prompt)).await
    }

    /// Says something and waits for the result.
    pub async fn run(&mut self, prompt: impl Into<Content>) -> anyhow::Result<TurnResult> {
        self.say(prompt).await?;
        self.result().await
    }

    /// Sends a frame.
    pub async fn send(&mut self, frame: impl Into<Frame>) -> anyhow::Result<()> {
        let line = serde_json::to_string(&frame.into())?;
        self.send_line(&line).await
    }

    /// Sends a line as it is, whether it is a frame or not.
    pub async fn send_line(&mut self, line: &str) -> anyhow::Result<()> {
        let sending = self.parts.connection.send(line);
        tokio::time::timeout(self.parts.deadline, sending).await.context("the engine does not read")?
    }

    /// Asks the engine something and waits for its answer.
    pub async fn ask<A: Ask>(&mut self, question: A) -> anyhow::Result<A::Reply> {
        let response = self.ask_raw(serde_json::to_value(question.into())?).await?;
        Ok(response.reply::<A>()?)
    }

    /// Asks the engine something, given as JSON with its `subtype`, and waits for the answer, whatever it is.
    pub async fn ask_raw(&mut self, question: Value) -> anyhow::Result<Response> {
        self.asked += 1;
        let request_id = format!("host_{}", self.asked);
        let from = self.heard.len();
        let line = json!({"type": "control_request", "request_id": request_id, "request": question});
        self.send_line(&line.to_string()).await?;
        let is_answer = |heard: &Heard| match &heard.frame {
            Frame::ControlResponse(answer) => answer.response.request_id() == request_id,
            _ => false,
        };
        let at = self.find(from, &format!("an answer to {question}"), is_answer).await?;
        match &self.heard[at].frame {
            Frame::ControlResponse(answer) => Ok(answer.response.clone()),
            other => Err(anyhow!("a {} is no answer", other.kind())),
        }
    }

    /// The next frame that fits, among those after the last one that was waited for.
    pub async fn next(&mut self, fits: impl Fn(&Frame) -> bool) -> anyhow::Result<&Frame> {
        let at = self.find(self.seen, "a frame", |heard| fits(&heard.frame)).await?;
        self.seen = at + 1;
        Ok(&self.heard[at].frame)
    }

    /// The next frame that [looks like](looks_like) this, among those after the last one that was waited for.
    pub async fn next_like(&mut self, pattern: &Value) -> anyhow::Result<&Value> {
        let at = self.find(self.seen, &pattern.to_string(), |heard| looks_like(&heard.json, pattern)).await?;
        self.seen = at + 1;
        Ok(&self.heard[at].json)
    }

    /// The first frame of all that fits, waited for or not.
    pub(crate) async fn first(
        &mut self,
        what: &str,
        fits: impl Fn(&Value) -> bool,
    ) -> anyhow::Result<&Value> {
        let at = self.find(0, what, |heard| fits(&heard.json)).await?;
        Ok(&self.heard[at].json)
    }

    /// The next result.
    pub async fn result(&mut self) -> anyhow::Result<TurnResult> {
        match self.next(|frame| matches!(frame, Frame::Result(_))).await? {
            Frame::Result(result) => Ok((**result).clone()),
            other => Err(anyhow!("a {} is no result", other.kind())),
        }
    }

    /// Every frame so far.
    pub fn frames(&self) -> impl Iterator<Item = &Frame> {
        self.heard.iter().map(|heard| &heard.frame)
    }

    /// Every line so far, with its JSON.
    pub fn heard(&self) -> &[Heard] {
        &self.heard
    }

    /// The questions about tool calls that the host was asked so far, as they came.
    pub fn questions(&self) -> Vec<&Value> {
        let requests = self.heard.iter().map(|heard| &heard.json["request"]);
        requests.filter(|request| request["subtype"] == "can_use_tool").collect()
    }

    /// What the model has been asked so far. A script in another process cannot tell.
    pub fn asked(&self) -> Vec<Asked> {
        self.parts.voice.asked()
    }

    /// The mock, if the script is played over HTTP.
    pub fn api(&self) -> Option<&MockApi> {
        match &self.parts.voice {
            Voice::Http(api) => Some(api),
            Voice::Scripted(_) | Voice::Elsewhere => None,
        }
    }

    /// The folders of this run.
    pub fn stage(&self) -> &Stage {
        &self.parts.stage
    }

    /// Finishes the input: nothing more will be said. The engine goes on with what it has.
    pub fn finish_input(&mut self) {
        self.parts.connection.finish_input();
    }

    /// Finishes the input, hears the engine out and tells how it ended.
    pub async fn finish(&mut self) -> anyhow::Result<Exit> {
        self.finish_input();
        let deadline = self.parts.deadline;
        let rest = async {
            while self.hear().await? {}
            self.parts.connection.ended().await
        };
        match tokio::time::timeout(deadline, rest).await {
            Ok(exit) => exit,
            Err(_) => bail!("the engine did not end within {deadline:?}; {}", self.story()),
        }
    }

    /// Finds a frame from a place on, hearing more as long as there is none. Gives its index.
    async fn find(
        &mut self,
        from: usize,
        what: &str,
        fits: impl Fn(&Heard) -> bool,
    ) -> anyhow::Result<usize> {
        let deadline = self.parts.deadline;
        let search = async {
            let mut at = from;
            loop {
                if let Some(found) = self.heard[at..].iter().position(&fits) {
                    return anyhow::Ok(Some(at + found));
                }
                at = self.heard.len();
                if !self.hear().await? {
                    return Ok(None);
                }
            }
        };
        match tokio::time::timeout(deadline, search).await {
            Ok(Ok(Some(at))) => Ok(at),
            Ok(Ok(None)) => bail!("the engine ended without {what}; {}", self.story()),
            Ok(Err(error)) => Err(error),
            Err(_) => bail!("no {what} within {deadline:?}; {}", self.story()),
        }
    }

    /// Hears one more line and answers it if it is a question. False once the engine has said everything.
    async fn hear(&mut self) -> anyhow::Result<bool> {
        if self.ended {
            return Ok(false);
        }
        let Some(heard) = self.parts.connection.hear().await? else {
            self.ended = true;
            return Ok(false);
        };
        let response = match &heard.frame {
            Frame::ControlRequest(asked) => (self.parts.answers)(&asked.request).response(&asked.request_id),
            _ => None,
        };
        self.heard.push(heard);
        if let Some(response) = response {
            let line = serde_json::to_string(&Frame::from(response))?;
            // An engine that has stopped listening does not need the answer.
            let _ = self.parts.connection.send(&line).await;
        }
        Ok(true)
    }

    /// What was heard, in short, for an error text.
    fn story(&self) -> String {
        let brief = |heard: &Heard| heard.json.to_string().chars().take(300).collect::<String>();
        let lines: Vec<String> = self.heard.iter().map(brief).collect();
        format!("it said {} lines:\n{}", lines.len(), lines.join("\n"))
    }
}
