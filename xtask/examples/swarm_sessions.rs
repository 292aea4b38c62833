//! Many sessions in one process through the Rust SDK, for `cargo xtask bench swarm`:
//! `swarm_sessions SESSIONS MESSAGES`.
//!
//! All sessions share one engine; the environment configures the model.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
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
    let mut numbers = std::env::args().skip(1).map(|word| word.parse::<usize>());
    let mut number = || {
        numbers
            .next()
            .context("usage: swarm_sessions SESSIONS MESSAGES")?
            .context("SESSIONS and MESSAGES must be numbers")
    };
    let (sessions, messages) = (number()?, number()?);
    let variable = |name: &str| std::env::var(name).ok();
    let engine = Engine::new(Providers::from_env(Arc::new(variable), HttpClient::from_env(variable)));
    let agent = Agent::new()
        .model("claude-sonnet-4-5")
        .permission_mode(PermissionMode::BypassPermissions)
        .engine(engine);
    let running: Vec<_> = (0..sessions).map(|_| tokio::spawn(run_session(agent.clone(), messages))).collect();
    for session in running {
        session.await??;
    }
    Ok(())
}

async fn run_session(agent: Agent, messages: usize) -> Result<()> {
    let mut session = Session::open(&agent).await?;
    for number in 1..=messages {
        session.send(format!("message {number}")).await?;
        let result = session.result().await?;
        ensure!(!result.is_error, "a turn failed: {:?}", result.result);
    }
    Ok(())
}
