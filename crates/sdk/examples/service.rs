//! A web service with one session per user, kept in SQLite. The answer streams as server-sent events; a client that
//! goes away interrupts its turn, and after a restart a user goes on where he was:
//! `cargo run --example service --features sqlite`, then `curl -N -d 'Hello.' 127.0.0.1:PORT/ann`
#![expect(clippy::print_stdout, reason = "an example prints for the user who runs it")]

#[path = "shared/model.rs"]
mod model;

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use futures::StreamExt;
use serde_json::json;
use tokio::sync::Mutex;
use whimbrel::store::SqliteStore;
use whimbrel::{Agent, Session, SharedSession};

/// The open sessions, by user.
#[derive(Clone)]
struct Users {
    agent: Agent,
    open: Arc<Mutex<HashMap<String, SharedSession>>>,
}

impl Users {
    /// The session of a user; resumes it if the service has been restarted since.
    async fn session(&self, user: &str) -> anyhow::Result<SharedSession> {
        let mut open = self.open.lock().await;
        if let Some(session) = open.get(user) {
            return Ok(session.clone());
        }
        let agent = self.agent.clone().resume_or_create(session_id(user)).await?;
        let session = SharedSession::new(Session::open(&agent).await?);
        open.insert(user.to_owned(), session.clone());
        Ok(session)
    }
}

/// A session id is a UUID; a real service would keep one with its user.
fn session_id(user: &str) -> String {
    let digits = user.bytes().fold(0_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    format!("00000000-0000-4000-8000-{:012x}", digits & 0xffff_ffff_ffff)
}

async fn ask(State(users): State<Users>, Path(user): Path<String>, prompt: String) -> Response {
    match users.session(&user).await {
        Ok(session) => {
            let text = session.ask(prompt).await.text_stream();
            let events = text.map(|piece| {
                Ok::<_, Infallible>(match piece {
                    Ok(text) => Event::default().data(text),
                    Err(error) => Event::default().event("error").data(error.to_string()),
                })
            });
            Sse::new(events).into_response()
        }
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, error.to_string()).into_response(),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let agent = Agent::new().tools(["Read"]).session_store(SqliteStore::open("sessions.db")?);
    let agent = model::real_or_scripted(agent, json!(["Hello.", "Hello again."]))?;
    let users = Users { agent, open: Arc::default() };
    let service = Router::new().route("/{user}", post(ask)).with_state(users);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}", listener.local_addr()?);
    axum::serve(listener, service).await?;
    Ok(())
}
