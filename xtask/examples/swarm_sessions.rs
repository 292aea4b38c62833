//! Many sessions in one process through the Rust SDK, for `cargo xtask bench swarm`:
//! `swarm_sessions SESSIONS MESSAGES frames|ask`: how the answers are read, as frames or with `Session::ask`.
//!
//! All sessions share one engine; the environment configures the model.

use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use tikv_jemallocator::Jemalloc;
use whimbrel::wire::permission::PermissionMode;
use whimbrel::{Agent, Engine, Session};
use whimbrel_models::http::HttpClient;
use whimbrel_models::providers::Providers;

/// Sessions move between threads, so memory is often freed on another thread than it was allocated on. There the
/// allocator of glibc has lock contention, jemalloc has not.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [sessions, messages, reading] = words.as_slice() else {
        bail!("usage: swarm_sessions SESSIONS MESSAGES frames|ask");
    };
    let number = |word: &str| word.parse::<usize>().context("SESSIONS and MESSAGES must be numbers");
    let (sessions, messages, reading) = (number(sessions)?, number(messages)?, Reading::parse(reading)?);
    let variable = |name: &str| std::env::var(name).ok();
    let engine = Engine::new(Providers::from_env(Arc::new(variable), HttpClient::from_env(variable)));
    let agent = Agent::new()
        .model("claude-sonnet-4-5")
        .permission_mode(PermissionMode::BypassPermissions)
        .engine(engine);
    let running = (0..sessions).map(|_| tokio::spawn(run_session(agent.clone(), messages, reading)));
    let running: Vec<_> = running.collect();
    for session in running {
        session.await??;
    }
    Ok(())
}

/// How a session reads its answers.
#[derive(Clone, Copy)]
enum Reading {
    Frames,
    Ask,
}

impl Reading {
    fn parse(word: &str) -> Result<Self> {
        match word {
            "frames" => Ok(Self::Frames),
            "ask" => Ok(Self::Ask),
            _ => bail!("answers are read as `frames` or with `ask`, not {word:?}"),
        }
    }
}

async fn run_session(agent: Agent, messages: usize, reading: Reading) -> Result<()> {
    let mut session = Session::open(&agent).await?;
    for number in 1..=messages {
        let prompt = format!("message {number}");
        match reading {
            Reading::Frames => {
                session.send(prompt).await?;
                let result = session.result().await?;
                ensure!(!result.is_error, "a turn failed: {:?}", result.result);
            }
            Reading::Ask => drop(session.ask(prompt).await?),
        }
    }
    Ok(())
}
