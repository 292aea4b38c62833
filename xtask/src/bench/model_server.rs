//! Model server on loopback: one thread per connection writes the scripted replies and logs their times.

use std::io::{self, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::clock;
use super::http::{self, HttpRequest, RequestKind};
use super::model_script::{self, ModelReply, ModelScript};

/// Maximum wait for replies in progress before the log is read.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// Small stacks, because there may be a thousand threads.
const THREAD_STACK_BYTES: usize = 128 * 1024;

pub(super) struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    started_at: Instant,
    state: Mutex<State>,
    idle: Condvar,
}

struct State {
    script: Arc<ModelScript>,
    steps: Vec<StepTiming>,
    open_steps: usize,
    /// First request since the script was set.
    first_request: Option<HttpRequest>,
}

/// One agent step as seen by the model.
#[derive(Debug, Clone, Copy)]
pub(super) struct StepTiming {
    /// Arrival of the first byte of the request.
    pub(super) request_at: Instant,
    /// End of the reply, or of the connection.
    pub(super) reply_at: Instant,
    /// Size of the request.
    pub(super) bytes: usize,
    /// Occurrences of the expected text in the request.
    pub(super) expected_matches: usize,
}

impl ModelServer {
    pub(super) fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let state = State {
            script: Arc::new(ModelScript::short_reply()),
            steps: Vec::new(),
            open_steps: 0,
            first_request: None,
        };
        let shared =
            Arc::new(Shared { started_at: clock::now(), state: Mutex::new(state), idle: Condvar::new() });
        let server = Self { address: listener.local_addr()?, shared: Arc::clone(&shared) };
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                // Errors of disconnecting engines are ignored.
                let serve = move || drop(serve(connection, &shared));
                drop(thread::Builder::new().stack_size(THREAD_STACK_BYTES).spawn(serve));
            }
        });
        Ok(server)
    }

    /// Base URL.
    pub(super) fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Sets the script and clears the log.
    pub(super) fn set_script(&self, script: ModelScript) {
        let mut state = self.shared.lock();
        *state = State { script: Arc::new(script), steps: Vec::new(), open_steps: 0, first_request: None };
    }

    /// Steps since the script was set, ordered by request time.
    pub(super) fn steps(&self) -> Vec<StepTiming> {
        let waiting = self
            .shared
            .idle
            .wait_timeout_while(self.shared.lock(), DRAIN_TIMEOUT, |state| state.open_steps > 0);
        let (state, _) = waiting.unwrap_or_else(PoisonError::into_inner);
        let mut steps = state.steps.clone();
        steps.sort_by_key(|step| step.request_at);
        steps
    }

    /// Returns true if the engine has offered a tool since the script was set.
    pub(super) fn was_tool_offered(&self, tool: &str) -> bool {
        self.shared.lock().first_request.as_ref().is_some_and(|request| request.offers_tool(tool))
    }

    /// Converts the time stamp in a paced delta.
    pub(super) fn instant_at(&self, micros: u64) -> Instant {
        self.shared.started_at + Duration::from_micros(micros)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Logs the start of a step; returns the script and the number of the step.
    fn begin_step(&self, request: HttpRequest) -> (Arc<ModelScript>, usize) {
        let mut state = self.lock();
        let expected_matches =
            state.script.expected_text.as_deref().map_or(0, |text| request.count_matches(text));
        let received_at = request.received_at;
        state.steps.push(StepTiming {
            request_at: received_at,
            reply_at: received_at,
            bytes: request.body.len(),
            expected_matches,
        });
        state.open_steps += 1;
        state.first_request.get_or_insert(request);
        (Arc::clone(&state.script), state.steps.len() - 1)
    }

    fn end_step(&self, number: usize) {
        let now = clock::now();
        let mut state = self.lock();
        if let Some(step) = state.steps.get_mut(number) {
            step.reply_at = now;
            state.open_steps = state.open_steps.saturating_sub(1);
        }
        self.idle.notify_all();
    }
}

fn serve(connection: TcpStream, shared: &Shared) -> io::Result<()> {
    connection.set_nodelay(true)?;
    let mut out = connection.try_clone()?;
    let mut reader = BufReader::with_capacity(64 * 1024, connection);
    while let Some(request) = http::read_request(&mut reader)? {
        match request.kind() {
            RequestKind::Other => out.write_all(&http::json_response("{}"))?,
            RequestKind::WholeReply => out.write_all(&http::json_response(&model_script::whole_reply()))?,
            RequestKind::SideStream => {
                out.write_all(&[&stream_start(0), &model_script::text_reply(["OK"])[..]].concat())?;
            }
            RequestKind::AgentStep => {
                let results = request.tool_result_count();
                let (script, number) = shared.begin_step(request);
                let written = script
                    .reply(results)
                    .map_or(Ok(()), |reply| write_reply(reply, number, &mut out, shared));
                shared.end_step(number);
                written?;
            }
        }
    }
    Ok(())
}

fn write_reply(reply: &ModelReply, number: usize, out: &mut TcpStream, shared: &Shared) -> io::Result<()> {
    let mut bytes = stream_start(number);
    match reply {
        ModelReply::Burst(rest) => {
            bytes.extend_from_slice(rest);
            out.write_all(&bytes)
        }
        ModelReply::Hang(rest) => {
            bytes.extend_from_slice(rest);
            out.write_all(&bytes)?;
            // Waits until the engine disconnects.
            out.read(&mut [0; 64]).map(drop)
        }
        ModelReply::Paced { deltas, gap } => {
            bytes.extend(model_script::text_start());
            out.write_all(&bytes)?;
            for _ in 0..*deltas {
                clock::sleep(*gap);
                let micros = shared.started_at.elapsed().as_micros();
                out.write_all(&model_script::text_delta(&format!("@{micros}@ ")))?;
            }
            out.write_all(&model_script::reply_end("end_turn"))
        }
    }
}

fn stream_start(number: usize) -> Vec<u8> {
    [http::STREAM_HEAD.as_bytes(), &model_script::message_start(number)].concat()
}
