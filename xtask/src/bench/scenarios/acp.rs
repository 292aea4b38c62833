//! An editor over the Agent Client Protocol: start, sessions, an answer in each. Our engine is the agent itself; for other
//! engines it is the official adapter with that engine, if the conformance suite has installed it.

use std::path::PathBuf;

use anyhow::{Result, bail};
use serde_json::{Value, json};

use crate::bench::clock::{self, to_ms};
use crate::bench::context::BenchContext;
use crate::bench::engine::Engine;
use crate::bench::engine_process::{AgentCommand, EngineProcess};
use crate::bench::metrics::{Metrics, median};
use crate::bench::model_script::ModelScript;
use crate::bench::process_snapshot;
use crate::command::workspace_root;

/// Number of sessions in one process.
const SESSIONS: u32 = 20;

const ADAPTER: &str =
    ".check/programs/acp-adapter/node_modules/@agentclientprotocol/claude-agent-acp/dist/index.js";

pub(super) fn run(context: &BenchContext, engine: &Engine) -> Result<Option<Metrics>> {
    let Some(command) = agent_command(engine) else { return Ok(None) };
    context.server.set_script(ModelScript::short_reply());
    let mut editor = Editor { agent: EngineProcess::start_command(context, engine, &command)?, next_id: 0 };
    editor.request("initialize", &json!({ "protocolVersion": 1, "clientCapabilities": {} }))?;
    let ready = to_ms(clock::now() - editor.agent.started_at);
    let folder = context.workspace_dir();
    let (mut opened, mut answered, mut memory_of_one) = (Vec::new(), Vec::new(), 0.0);
    for number in 0..SESSIONS {
        let started_at = clock::now();
        let made = editor.request("session/new", &json!({ "cwd": folder, "mcpServers": [] }))?;
        opened.push(to_ms(clock::now() - started_at));
        if number == 0 {
            memory_of_one = editor.memory()?;
        }
        let started_at = clock::now();
        let prompt = json!([{ "type": "text", "text": "go" }]);
        editor.request("session/prompt", &json!({ "sessionId": made["sessionId"], "prompt": prompt }))?;
        answered.push(to_ms(clock::now() - started_at));
    }
    Ok(Some(vec![
        ("start to initialize answered, ms", ready),
        ("first session/new, ms", opened[0]),
        ("session/new, ms", median(&opened)),
        ("prompt to answer, ms", median(&answered)),
        ("agent with one session, MB", memory_of_one),
        ("agent with 20 sessions, MB", editor.memory()?),
    ]))
}

/// The command that an editor starts; `None` if the adapter is not installed.
fn agent_command(engine: &Engine) -> Option<AgentCommand> {
    let is_ours =
        engine.program.file_stem().is_some_and(|stem| stem.to_string_lossy().starts_with("whimbrel"));
    if is_ours {
        let (program, arguments) = (engine.program.clone(), vec!["acp".into()]);
        return Some(AgentCommand { program, arguments, variables: Vec::new(), dir: None });
    }
    let adapter = workspace_root().join(ADAPTER);
    let program = find_program("node").filter(|_| adapter.is_file())?;
    let variables = vec![("CLAUDE_CODE_EXECUTABLE", engine.program.clone())];
    Some(AgentCommand { program, arguments: vec![adapter.into()], variables, dir: None })
}

/// Finds a program on the path of this process; engines get a path of their own.
fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|program| program.is_file())
}

/// The editor's side of the connection.
struct Editor {
    agent: EngineProcess,
    next_id: u64,
}

impl Editor {
    /// Sends a request and waits for its answer.
    fn request(&mut self, method: &str, params: &Value) -> Result<Value> {
        self.next_id += 1;
        let id = self.next_id;
        self.agent.send_json(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        loop {
            let message = self.agent.next_line()?.json()?;
            if message["id"] != id || message.get("method").is_some() {
                continue;
            }
            if let Some(error) = message.get("error") {
                bail!("{method} failed: {error}");
            }
            return Ok(message["result"].clone());
        }
    }

    /// Proportional memory of the agent process in megabytes, without the engines that an adapter starts.
    fn memory(&self) -> Result<f64> {
        Ok(process_snapshot::engine_memory(self.agent.meter_pid())?.proportional)
    }
}
