//! The engine in this process: a task, and no JSON on the way.

use whimbrel_engine::{Engine, Start, link, serve};
use whimbrel_wire::options::Options;

use crate::environment::Environment;
use crate::transport::{Connection, Incoming};

/// Starts a session of an engine.
pub(crate) fn connect(engine: Engine, options: &Options, environment: &Environment) -> Connection {
    let (engine_end, host_end) = link::pair();
    // What the options add to the environment is added by the engine.
    let start = Start { options: options.clone(), env: environment.variables().clone() };
    tokio::spawn(serve(engine, engine_end, start));
    Connection {
        sender: host_end.sender,
        incoming: Incoming::Frames(host_end.receiver),
        finished: host_end.finished,
        stop: host_end.stop,
        wants_initialize: false,
    }
}
