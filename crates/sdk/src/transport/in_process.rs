//! The engine in this process: a task, and no JSON on the way.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;

use whimbrel_engine::{Engine, Start, link, serve};
use whimbrel_models::http::Door;
use whimbrel_models::providers::Providers;
use whimbrel_wire::options::Options;

use crate::transport::{Connection, Incoming};

/// Starts a session of an engine; of one of its own, if none is given.
pub(super) fn connect(engine: Option<&Engine>, options: &Options) -> Connection {
    let text =
        |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
    let mut env: BTreeMap<String, String> = std::env::vars_os().filter_map(text).collect();
    env.extend(options.env.clone());
    let engine = engine.cloned().unwrap_or_else(|| engine_for(&env));
    let (engine_end, host_end) = link::pair();
    tokio::spawn(serve(engine, engine_end, Start { options: options.clone(), env }));
    Connection {
        sender: host_end.sender,
        incoming: Incoming::Frames(host_end.receiver),
        finished: host_end.finished,
        stop: host_end.stop,
        wants_initialize: false,
    }
}

/// An engine that asks the providers which the environment names.
fn engine_for(env: &BTreeMap<String, String>) -> Engine {
    let env = env.clone();
    let get = move |name: &str| env.get(name).cloned();
    let door = Door::from_env(&get);
    Engine::new(Providers::from_env(Arc::new(get), door))
}
