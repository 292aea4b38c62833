//! `whimbrel serve`: the page, the idle server, messages, many sessions that rest, and many browsers on one session. Only
//! our engine has it.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use memchr::{memchr_iter, memmem};
use serde_json::{Value, json};

use crate::bench::clock::{self, to_ms};
use crate::bench::context::BenchContext;
use crate::bench::engine::Engine;
use crate::bench::engine_process::{AgentCommand, EngineProcess};
use crate::bench::metrics::{Metrics, percentile};
use crate::bench::model_script::{ModelReply, ModelScript};
use crate::bench::process_snapshot;

/// Messages whose way to the model is timed.
const MESSAGES: usize = 100;

/// Sessions that rest in the end.
const SESSIONS: usize = 1000;

/// Clients that create sessions at a time.
const CLIENTS: usize = 8;

const BROWSERS: usize = 100;
const DELTAS: usize = 2000;
const GAP: Duration = Duration::from_millis(1);

const TIMEOUT: Duration = Duration::from_secs(120);

pub(super) fn run(context: &BenchContext, engine: &Engine) -> Result<Option<Metrics>> {
    let is_ours =
        engine.program.file_stem().is_some_and(|stem| stem.to_string_lossy().starts_with("whimbrel"));
    if !is_ours {
        return Ok(None);
    }
    let host = Host::start(context, engine)?;
    let idle = host.memory()?;
    let (page_requests, page_bytes) = host.load_page()?;
    let waited = host.time_messages(context)?;
    let streamed = host.stream_to_browsers(context)?;
    let (events_per_second, resting) = host.create_sessions(context)?;
    Ok(Some(vec![
        ("ready, ms", host.ready),
        ("idle server, MB", idle),
        ("page, requests", page_requests),
        ("page, KB transferred", page_bytes / 1024.0),
        ("message to model p50, ms", percentile(&waited, 50)),
        ("message to model p99, ms", percentile(&waited, 99)),
        ("100 browsers: cores", streamed.cores),
        ("100 browsers: latency p99, ms", streamed.latency),
        ("time per stored event, us", 1e6 / events_per_second),
        ("1,000 resting sessions, MB", resting),
    ]))
}

/// What a stream to many browsers took.
struct Streamed {
    cores: f64,
    latency: f64,
}

/// Where a host is, and the folder of its sessions.
struct Api {
    address: String,
    key: String,
    folder: String,
}

/// A running host.
struct Host {
    process: EngineProcess,
    api: Api,
    ready: f64,
}

impl Api {
    fn client(&self) -> Result<Client> {
        Client::connect(&self.address, &self.key)
    }

    fn new_session(&self, client: &mut Client, key: &str, text: Option<&str>) -> Result<String> {
        let mut body = json!({"folder": self.folder, "key": key});
        if let Some(text) = text {
            body["message"] = json!({"key": "first", "text": text});
        }
        let session = client.json("POST", "/v1/sessions", Some(&body))?;
        Ok(session["id"].as_str().context("the session has no id")?.to_owned())
    }
}

impl Host {
    fn start(context: &BenchContext, engine: &Engine) -> Result<Self> {
        let dir = tempfile::Builder::new().prefix("host-").tempdir_in(context.root_dir())?.keep();
        let (data, key_file) = (dir.join("data"), dir.join("key"));
        let folder = context.workspace_dir();
        let mut arguments: Vec<std::ffi::OsString> =
            ["serve", "--json", "--listen", "127.0.0.1:0"].map(Into::into).into();
        for (flag, value) in [("--data", &data), ("--token-file", &key_file), ("--root", &folder)] {
            arguments.push(flag.into());
            arguments.push(value.into());
        }
        let command = AgentCommand {
            program: engine.program.clone(),
            arguments,
            variables: Vec::new(),
            dir: Some(folder.clone()),
        };
        let mut process = EngineProcess::start_command(context, engine, &command)?;
        let line = process.next_line()?;
        let ready = to_ms(line.received_at.saturating_duration_since(process.started_at));
        let url = line.json()?["url"].as_str().context("the ready line has no URL")?.to_owned();
        let address = url.trim_start_matches("http://").to_owned();
        let key = std::fs::read_to_string(key_file)?.trim().to_owned();
        let api = Api { address, key, folder: folder.display().to_string() };
        Ok(Self { process, api, ready })
    }

    fn memory(&self) -> Result<f64> {
        Ok(process_snapshot::engine_memory(self.process.meter_pid())?.proportional)
    }

    fn cpu(&self) -> Result<f64> {
        Ok(process_snapshot::engine_stats(self.process.meter_pid())?.cpu)
    }

    /// Loads the page as a browser does; returns the requests, with that of the socket, and the bytes of all answers.
    fn load_page(&self) -> Result<(f64, f64)> {
        let mut client = self.api.client()?;
        let shell = client.request("GET", "/", None)?;
        let text = String::from_utf8_lossy(&shell.body).into_owned();
        let paths = text.split('"').filter(|part| part.starts_with("/app/"));
        let (mut requests, mut bytes) = (2.0, shell.transferred);
        for path in paths.chain(["/v1/me"]) {
            bytes += client.request("GET", path, None)?.transferred;
            requests += 1.0;
        }
        Ok((requests, bytes as f64))
    }

    /// Times from sending a message to its request at the model, in milliseconds.
    fn time_messages(&self, context: &BenchContext) -> Result<Vec<f64>> {
        context.server.set_script(ModelScript::short_reply());
        let mut client = self.api.client()?;
        let session = self.api.new_session(&mut client, "timed", Some("warm up"))?;
        client.wait_for_rest(&session)?;
        let mut waited = Vec::with_capacity(MESSAGES);
        for number in 0..MESSAGES {
            let before = context.server.steps().len();
            let body = json!({"key": format!("timed-{number}"), "text": "go"});
            let sent_at = clock::now();
            client.json("POST", &format!("/v1/sessions/{session}/messages"), Some(&body))?;
            client.wait_for_rest(&session)?;
            let steps = context.server.steps();
            let step = steps.get(before).context("the model was not asked")?;
            waited.push(to_ms(step.request_at.saturating_duration_since(sent_at)));
        }
        Ok(waited)
    }

    /// Lets a session stream while many browsers look at it.
    fn stream_to_browsers(&self, context: &BenchContext) -> Result<Streamed> {
        let reply = ModelReply::Paced { deltas: DELTAS, gap: GAP };
        context.server.set_script(ModelScript::single_reply(reply));
        let mut client = self.api.client()?;
        let session = self.api.new_session(&mut client, "streamed", None)?;
        let open = |_| Browser::open(&self.api.address, &self.api.key, &session);
        let browsers = (0..BROWSERS).map(open).collect::<Result<Vec<_>>>()?;
        let browsers: Vec<_> =
            browsers.into_iter().map(|browser| thread::spawn(move || browser.watch())).collect();
        let (cpu, started_at) = (self.cpu()?, clock::now());
        let body = json!({"key": "go", "text": "go"});
        client.json("POST", &format!("/v1/sessions/{session}/messages"), Some(&body))?;
        client.wait_for_rest(&session)?;
        let (cpu, time) = (self.cpu()? - cpu, to_ms(clock::now() - started_at));
        let mut latencies = Vec::with_capacity(BROWSERS * DELTAS);
        for browser in browsers {
            let heard = browser.join().map_err(|_| anyhow::anyhow!("a browser has failed"))??;
            latencies.extend(heard.into_iter().map(|(micros, at): (u64, Instant)| {
                to_ms(at.saturating_duration_since(context.server.instant_at(micros)))
            }));
        }
        ensure!(latencies.len() == BROWSERS * DELTAS, "{} deltas were heard", latencies.len());
        Ok(Streamed { cores: cpu / time, latency: percentile(&latencies, 99) })
    }

    /// Creates many sessions with a message each; returns the events stored per second, and the memory when all rest.
    fn create_sessions(&self, context: &BenchContext) -> Result<(f64, f64)> {
        context.server.set_script(ModelScript::short_reply());
        let mut client = self.api.client()?;
        let (before, started_at) = (client.stored_events()?, clock::now());
        let api = &self.api;
        let create = |number: usize| -> Result<()> {
            let mut client = api.client()?;
            for index in (number..SESSIONS).step_by(CLIENTS) {
                let session = api.new_session(&mut client, &format!("many-{index}"), Some("go"))?;
                client.wait_for_rest(&session)?;
            }
            Ok(())
        };
        let create = &create;
        thread::scope(|scope| {
            let clients: Vec<_> = (0..CLIENTS).map(|number| scope.spawn(move || create(number))).collect();
            clients
                .into_iter()
                .try_for_each(|client| client.join().map_err(|_| anyhow::anyhow!("a client has failed"))?)
        })?;
        let seconds = (clock::now() - started_at).as_secs_f64();
        let events = client.stored_events()? - before;
        Ok((events / seconds, self.memory()?))
    }
}

/// An answer.
struct Answer {
    status: u16,
    body: Vec<u8>,
    /// Bytes with the head.
    transferred: usize,
}

/// A client of the API on one connection.
struct Client {
    stream: BufReader<TcpStream>,
    address: String,
    key: String,
}

impl Client {
    fn connect(address: &str, key: &str) -> Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        Ok(Self { stream: BufReader::new(stream), address: address.to_owned(), key: key.to_owned() })
    }

    /// Sends the head of a request, and a body.
    fn send(&mut self, method: &str, path: &str, headers: &str, body: &str) -> Result<()> {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nAccept-Encoding: br, gzip\r\n{headers}\r\n{body}",
            self.address, self.key
        );
        Ok(self.stream.get_mut().write_all(head.as_bytes())?)
    }

    /// Reads the head of an answer: its status, the length of its body, its own length.
    fn read_head(&mut self) -> Result<(u16, usize, usize)> {
        let (mut status, mut length, mut size) = (0, 0, 0);
        loop {
            let mut line = String::new();
            size += self.stream.read_line(&mut line)?;
            let line = line.trim_end();
            if line.is_empty() {
                return Ok((status, length, size));
            }
            let lower = line.to_ascii_lowercase();
            if let Some(rest) = lower.strip_prefix("http/1.1 ") {
                status = rest.get(..3).unwrap_or_default().parse()?;
            } else if let Some(rest) = lower.strip_prefix("content-length:") {
                length = rest.trim().parse()?;
            }
        }
    }

    fn request(&mut self, method: &str, path: &str, body: Option<&Value>) -> Result<Answer> {
        let body = body.map(Value::to_string).unwrap_or_default();
        let headers = format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
        self.send(method, path, &headers, &body)?;
        let (status, length, head) = self.read_head()?;
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok(Answer { status, body, transferred: head + length })
    }

    fn json(&mut self, method: &str, path: &str, body: Option<&Value>) -> Result<Value> {
        let answer = self.request(method, path, body)?;
        if answer.status >= 300 {
            bail!("{method} {path}: {} {}", answer.status, String::from_utf8_lossy(&answer.body));
        }
        Ok(serde_json::from_slice(&answer.body)?)
    }

    /// Waits until no turn of a session runs and no message waits.
    fn wait_for_rest(&mut self, session: &str) -> Result<()> {
        let mut after = 0;
        loop {
            let row = self.json("GET", &format!("/v1/sessions/{session}"), None)?;
            if row["state"] == "resting" && row["queued"] == 0 {
                return Ok(());
            }
            after = row["head"].as_i64().unwrap_or(after);
            self.json("GET", &format!("/v1/sessions/{session}/events?after={after}&wait=5&limit=1"), None)?;
        }
    }

    fn stored_events(&mut self) -> Result<f64> {
        let answer = self.request("GET", "/metrics", None)?;
        let text = String::from_utf8(answer.body)?;
        let line = text.lines().find_map(|line| line.strip_prefix("whimbrel_events_total "));
        Ok(line.context("there is no number of events")?.parse()?)
    }
}

/// A browser that looks at a session.
struct Browser {
    client: Client,
}

impl Browser {
    fn open(address: &str, key: &str, session: &str) -> Result<Self> {
        let mut client = Client::connect(address, key)?;
        let headers = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                       Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: whimbrel.1\r\n";
        client.send("GET", "/v1/ws", headers, "")?;
        let (status, _, _) = client.read_head()?;
        ensure!(status == 101, "the socket was refused: {status}");
        let mut browser = Self { client };
        browser.send(&json!({"op": "subscribe", "id": "1", "session": session, "after": 0}).to_string())?;
        while memmem::find(&browser.next()?, br#""op":"reply""#).is_none() {}
        Ok(browser)
    }

    /// Sends a short text. Its mask is zero, which leaves it as it is.
    fn send(&mut self, text: &str) -> Result<()> {
        let length = u16::try_from(text.len())?.to_be_bytes();
        let mut frame = vec![0x81, 0xfe, length[0], length[1], 0, 0, 0, 0];
        frame.extend_from_slice(text.as_bytes());
        Ok(self.client.stream.get_mut().write_all(&frame)?)
    }

    fn next(&mut self) -> Result<Vec<u8>> {
        let mut head = [0; 2];
        self.client.stream.read_exact(&mut head)?;
        let length = match head[1] {
            126 => {
                let mut length = [0; 2];
                self.client.stream.read_exact(&mut length)?;
                u64::from(u16::from_be_bytes(length))
            }
            127 => {
                let mut length = [0; 8];
                self.client.stream.read_exact(&mut length)?;
                u64::from_be_bytes(length)
            }
            short => u64::from(short),
        };
        let mut message = vec![0; usize::try_from(length)?];
        self.client.stream.read_exact(&mut message)?;
        Ok(message)
    }

    /// Hears all deltas: when each was sent, and when it came.
    fn watch(mut self) -> Result<Vec<(u64, Instant)>> {
        let mut heard = Vec::with_capacity(DELTAS);
        loop {
            let message = self.next()?;
            let at = clock::now();
            if memmem::find(&message, b"text_delta").is_some() {
                heard.extend(sent_micros(&message).map(|micros| (micros, at)));
            } else if memmem::find(&message, br#""type":"result""#).is_some() {
                return Ok(heard);
            }
        }
    }
}

/// Time at which a delta was sent: the number between two `@`.
fn sent_micros(message: &[u8]) -> Option<u64> {
    let mut marks = memchr_iter(b'@', message);
    let (from, to) = (marks.next()?, marks.next()?);
    std::str::from_utf8(&message[from + 1..to]).ok()?.parse().ok()
}
