//! Resuming long sessions, and listing many.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::bench::clock::to_ms;
use crate::bench::context::BenchContext;
use crate::bench::engine::{Engine, LaunchOptions};
use crate::bench::engine_process::{EngineProcess, measure_as_user};
use crate::bench::metrics::Metrics;
use crate::bench::script::{ModelScript, ToolCall};
use crate::bench::transcript_generator::TranscriptSeed;

/// Tool turns of the long session, two messages each.
const LONG_SESSION_TURNS: usize = 2500;

/// Calls of the short session from which the long ones are generated.
const SEED_CALLS: usize = 10;

/// Size of the largest transcript in bytes.
const HUGE_TRANSCRIPT_BYTES: u64 = 2_000_000_000;

/// Turns after its last compaction.
const TURNS_AFTER_COMPACTION: usize = 50;

/// Number of listed sessions.
const LISTED_SESSIONS: usize = 10_000;

/// Resumes a session of 5,000 messages.
pub(super) fn run_long(lab: &BenchContext, engine: &Engine) -> Result<Option<Metrics>> {
    let short = Transcript::record(lab, engine)?;
    let text = fs::read_to_string(&short.path)?;
    TranscriptSeed::new(&text)?
        .write_transcript(LONG_SESSION_TURNS - SEED_CALLS, &mut short.create_file()?)?;
    let figures = short.resume(lab, engine, 1_000_000)?;
    short.remove()?;
    Ok(Some(figures))
}

/// Resumes a session of 2 GB, most of which was compacted.
pub(super) fn run_huge(lab: &BenchContext, engine: &Engine) -> Result<Option<Metrics>> {
    if !is_whimbrel(engine) {
        return Ok(None);
    }
    let short = Transcript::record(lab, engine)?;
    let text = fs::read_to_string(&short.path)?;
    let seed = TranscriptSeed::new(&text)?;
    let mut out = short.create_file()?;
    let mut copies = seed.start_copies(&mut out)?;
    let mut written = text.len() as u64;
    while written < HUGE_TRANSCRIPT_BYTES {
        written += copies.write_turn(&mut out)? as u64;
    }
    let (boundary, summary) = compaction_lines(&text, copies.last_uuid()?)?;
    writeln!(out, "{boundary}\n{summary}")?;
    // The following turns have the summary as parent.
    copies.set_parent(summary["uuid"].as_str().unwrap_or_default())?;
    for _ in 0..TURNS_AFTER_COMPACTION {
        copies.write_turn(&mut out)?;
    }
    copies.finish(&mut out)?;
    drop(out);
    let figures = short.resume(lab, engine, 10_000)?;
    short.remove()?;
    Ok(Some(figures))
}

/// Lists 10,000 sessions: all of them, and the newest 20.
pub(super) fn run_list(lab: &BenchContext, engine: &Engine) -> Result<Option<Metrics>> {
    if !is_whimbrel(engine) {
        return Ok(None);
    }
    let short = Transcript::record(lab, engine)?;
    let text = fs::read(&short.path)?;
    let folder = short.path.parent().context("a transcript lies in a folder")?.to_path_buf();
    let name = |number: usize| folder.join(format!("{number:08x}-0000-4000-8000-000000000000.jsonl"));
    for number in 0..LISTED_SESSIONS {
        fs::write(name(number), &text)?;
    }
    let all = measure_as_user(lab, engine, &["sessions", "list", "--limit", "0", "--json"])?;
    let newest = measure_as_user(lab, engine, &["sessions", "list"])?;
    for number in 0..LISTED_SESSIONS {
        fs::remove_file(name(number))?;
    }
    ensure!(all.code == Some(0) && newest.code == Some(0), "the sessions could not be listed");
    short.remove()?;
    Ok(Some(vec![
        ("all: CPU, ms", all.cpu),
        ("all: whole process, ms", all.wall),
        ("all: largest process, MB", all.largest),
        ("newest 20: CPU, ms", newest.cpu),
        ("newest 20: whole process, ms", newest.wall),
    ]))
}

/// Returns true for our engine; others have no such transcripts or no session list.
fn is_whimbrel(engine: &Engine) -> bool {
    engine.program.file_stem().is_some_and(|name| name == "whimbrel")
}

/// A transcript that an engine wrote in a session with a few calls.
struct Transcript {
    path: PathBuf,
    session: String,
}

impl Transcript {
    fn record(lab: &BenchContext, engine: &Engine) -> Result<Self> {
        let before = find_transcripts(&engine.home);
        lab.server.set_script(ModelScript::repeat_call(SEED_CALLS, |number| {
            ToolCall::bash(&format!("printf '%0400d' {number}"))
        }));
        EngineProcess::run_one_prompt(lab, engine, LaunchOptions::default())?;
        let after = find_transcripts(&engine.home);
        let path = after.into_iter().find(|path| !before.contains(path)).context("no transcript was kept")?;
        let session = path.file_stem().context("a transcript has a name")?.to_string_lossy().into_owned();
        Ok(Self { path, session })
    }

    /// Truncates the file for rewriting.
    fn create_file(&self) -> Result<BufWriter<File>> {
        Ok(BufWriter::with_capacity(1 << 20, File::create(&self.path)?))
    }

    /// Resumes the session with one prompt. The request must have at least `least` bytes, else the session was not
    /// loaded.
    fn resume(&self, lab: &BenchContext, engine: &Engine, least: usize) -> Result<Metrics> {
        let size = fs::metadata(&self.path)?.len();
        lab.server.set_script(ModelScript::short_reply());
        let start = LaunchOptions { resume: Some(&self.session), ..LaunchOptions::default() };
        let whole = EngineProcess::run_one_prompt(lab, engine, start)?;
        let steps = lab.server.steps();
        let first = steps.first().context("the model was not asked")?;
        ensure!(first.bytes >= least, "the first request has only {} bytes", first.bytes);
        Ok(vec![
            (
                "start to first request, ms",
                to_ms(first.request_at.saturating_duration_since(whole.started_at)),
            ),
            ("CPU, ms", whole.usage.cpu),
            ("largest process, MB", whole.usage.largest),
            ("transcript, MB", size as f64 / 1e6),
            ("first request, bytes", first.bytes as f64),
        ])
    }

    fn remove(self) -> Result<()> {
        Ok(fs::remove_file(self.path)?)
    }
}

/// All transcripts in a home directory.
fn find_transcripts(home: &Path) -> Vec<PathBuf> {
    let folders = fs::read_dir(home.join(".claude/projects")).into_iter().flatten().flatten();
    let files = folders.flat_map(|folder| fs::read_dir(folder.path()).into_iter().flatten().flatten());
    files.map(|file| file.path()).filter(|path| path.extension().is_some_and(|end| end == "jsonl")).collect()
}

/// Transcript lines of a compaction: the boundary and the summary.
fn compaction_lines(transcript: &str, leaf: &str) -> Result<(Value, Value)> {
    let lines = transcript.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut line = lines
        .into_iter()
        .find(|line| line["type"] == "user" && line["message"]["content"].is_array())
        .context("the transcript has no prompt")?;
    let (at, said) = ("eeeeeeee-0000-4000-8000-000000000001", "eeeeeeee-0000-4000-8000-000000000002");
    let boundary = json!({
        "parentUuid": null, "logicalParentUuid": leaf, "isSidechain": false, "type": "system",
        "subtype": "compact_boundary", "sessionId": line["sessionId"], "uuid": at, "timestamp": line["timestamp"],
        "compactMetadata": {"trigger": "auto", "preTokens": 150_000},
    });
    line["parentUuid"] = at.into();
    line["uuid"] = said.into();
    line["isCompactSummary"] = true.into();
    line["message"] =
        json!({"role": "user", "content": [{"type": "text", "text": "What was said before, in short."}]});
    Ok((boundary, line))
}
