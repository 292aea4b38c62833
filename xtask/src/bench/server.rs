//! The model's server on loopback: a thread per connection that writes what the script holds ready, and a log of when.

use std::io::{self, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::clock;
use super::http::{self, Request, Wanted};
use super::script::{self, Reply, Script};

/// How long the log waits for replies that are under way.
const PATIENCE: Duration = Duration::from_secs(5);

/// Threads need little room here, and there may be a thousand.
const STACK: usize = 128 * 1024;

/// A running server.
pub(super) struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    began: Instant,
    state: Mutex<State>,
    idle: Condvar,
}

struct State {
    script: Arc<Script>,
    steps: Vec<Step>,
    open: usize,
    /// The first request of the script.
    first: Option<Request>,
}

/// A step of an agent, as the model saw it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    /// When the first byte of the request was there.
    pub(super) asked: Instant,
    /// When the last byte of the reply was written, or the connection closed.
    pub(super) answered: Instant,
    /// The size of the request.
    pub(super) bytes: usize,
    /// How often the expected text occurs in it.
    pub(super) hits: usize,
}

impl Server {
    pub(super) fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let state = State { script: Arc::new(Script::word()), steps: Vec::new(), open: 0, first: None };
        let shared = Arc::new(Shared { began: clock::now(), state: Mutex::new(state), idle: Condvar::new() });
        let server = Self { address: listener.local_addr()?, shared: Arc::clone(&shared) };
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                // An engine that goes away in the middle is no concern of ours.
                let serve = move || drop(serve(connection, &shared));
                drop(thread::Builder::new().stack_size(STACK).spawn(serve));
            }
        });
        Ok(server)
    }

    /// The base URL.
    pub(super) fn address(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Follows another script from now on; the log begins anew.
    pub(super) fn play(&self, script: Script) {
        let mut state = self.shared.lock();
        *state = State { script: Arc::new(script), steps: Vec::new(), open: 0, first: None };
    }

    /// The steps of this script, in the order in which they were asked.
    pub(super) fn steps(&self) -> Vec<Step> {
        let waiting =
            self.shared.idle.wait_timeout_while(self.shared.lock(), PATIENCE, |state| state.open > 0);
        let (state, _) = waiting.unwrap_or_else(PoisonError::into_inner);
        let mut steps = state.steps.clone();
        steps.sort_by_key(|step| step.asked);
        steps
    }

    /// Whether the engine has offered a tool since the script began.
    pub(super) fn was_offered(&self, tool: &str) -> bool {
        self.shared.lock().first.as_ref().is_some_and(|request| request.offers(tool))
    }

    /// The moment that a paced delta names.
    pub(super) fn moment(&self, micros: u64) -> Instant {
        self.shared.began + Duration::from_micros(micros)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A step begins: what is said, and its number.
    fn open(&self, request: Request) -> (Arc<Script>, usize) {
        let mut state = self.lock();
        let hits = state.script.expected.as_deref().map_or(0, |text| request.count(text));
        let asked = request.arrived;
        state.steps.push(Step { asked, answered: asked, bytes: request.body.len(), hits });
        state.open += 1;
        state.first.get_or_insert(request);
        (Arc::clone(&state.script), state.steps.len() - 1)
    }

    fn close(&self, number: usize) {
        let now = clock::now();
        let mut state = self.lock();
        if let Some(step) = state.steps.get_mut(number) {
            step.answered = now;
            state.open = state.open.saturating_sub(1);
        }
        self.idle.notify_all();
    }
}

fn serve(connection: TcpStream, shared: &Shared) -> io::Result<()> {
    connection.set_nodelay(true)?;
    let mut out = connection.try_clone()?;
    let mut source = BufReader::with_capacity(64 * 1024, connection);
    while let Some(request) = http::read(&mut source)? {
        match request.wanted() {
            Wanted::Other => out.write_all(&http::whole("{}"))?,
            Wanted::Whole => out.write_all(&http::whole(&script::whole()))?,
            Wanted::Aside => out.write_all(&[&begin(0), &script::saying(["OK"])[..]].concat())?,
            Wanted::Step => {
                let results = request.results();
                let (script, number) = shared.open(request);
                let said = script.reply(results).map_or(Ok(()), |reply| say(reply, number, &mut out, shared));
                shared.close(number);
                said?;
            }
        }
    }
    Ok(())
}

fn say(reply: &Reply, number: usize, out: &mut TcpStream, shared: &Shared) -> io::Result<()> {
    let mut bytes = begin(number);
    match reply {
        Reply::Flood(rest) => {
            bytes.extend_from_slice(rest);
            out.write_all(&bytes)
        }
        Reply::Silence(rest) => {
            bytes.extend_from_slice(rest);
            out.write_all(&bytes)?;
            // Nothing comes until the engine hangs up.
            out.read(&mut [0; 64]).map(drop)
        }
        Reply::Paced { deltas, gap } => {
            bytes.extend(script::begin_text());
            out.write_all(&bytes)?;
            for _ in 0..*deltas {
                clock::pause(*gap);
                let micros = shared.began.elapsed().as_micros();
                out.write_all(&script::delta(&format!("@{micros}@ ")))?;
            }
            out.write_all(&script::end("end_turn"))
        }
    }
}

fn begin(number: usize) -> Vec<u8> {
    [http::STREAM.as_bytes(), &script::opening(number)].concat()
}
