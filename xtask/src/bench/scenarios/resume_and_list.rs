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
use crate::bench::model_script::{ModelScript, ToolCall};
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
pub(super) fn run_long(context: &BenchContext, engine: &Engine) -> Result<Option<Metrics>> {
    let transcript = Transcript::record(context, engine)?;
    let text = fs::read_to_string(&transcript.path)?;
    TranscriptSeed::new(&text)?
        .write_transcript(LONG_SESSION_TURNS - SEED_CALLS, &mut transcript.create_file()?)?;
    let metrics = transcript.resume(context, engine, 1_000_000)?;
    transcript.remove()?;
    Ok(Some(metrics))
}

/// Resumes a session of 2 GB, most of which was compacted.
pub(super) fn run_huge(context: &BenchContext, engine: &Engine) -> Result<Option<Metrics>> {
    if !is_whimbrel(engine) {
        return Ok(None);
    }
    let transcript = Transcript::record(context, engine)?;
    let text = fs::read_to_string(&transcript.path)?;
    let seed = TranscriptSeed::new(&text)?;
    let mut out = transcript.create_file()?;
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
    let metrics = transcript.resume(context, engine, 10_000)?;
    transcript.remove()?;
    Ok(Some(metrics))
}

/// Lists 10,000 sessions: all of them, and the newest 20.
pub(super) fn run_list(context: &BenchContext, engine: &Engine) -> Result<Option<Metrics>> {
    if !is_whimbrel(engine) {
        return Ok(None);
    }
    let transcript = Transcript::record(context, engine)?;
    let text = fs::read(&transcript.path)?;
    let dir = transcript.path.parent().context("the transcript has no directory")?.to_path_buf();
    let name = |number: usize| dir.join(format!("{number:08x}-0000-4000-8000-000000000000.jsonl"));
    for number in 0..LISTED_SESSIONS {
        fs::write(name(number), &text)?;
    }
    let all = measure_as_user(context, engine, &["sessions", "list", "--limit", "0", "--json"])?;
    let newest = measure_as_user(context, engine, &["sessions", "list"])?;
    for number in 0..LISTED_SESSIONS {
        fs::remove_file(name(number))?;
    }
    ensure!(all.code == Some(0) && newest.code == Some(0), "the engine could not list the sessions");
    transcript.remove()?;
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
    fn record(context: &BenchContext, engine: &Engine) -> Result<Self> {
        let before = find_transcripts(&engine.home);
        context.server.set_script(ModelScript::repeat_call(SEED_CALLS, |number| {
            ToolCall::bash(&format!("printf '%0400d' {number}"))
        }));
        EngineProcess::run_one_prompt(context, engine, LaunchOptions::default())?;
        let after = find_transcripts(&engine.home);
        let path = after
            .into_iter()
            .find(|path| !before.contains(path))
            .context("the engine wrote no transcript")?;
        let session =
            path.file_stem().context("the transcript has no file name")?.to_string_lossy().into_owned();
        Ok(Self { path, session })
    }

    /// Truncates the file for rewriting.
    fn create_file(&self) -> Result<BufWriter<File>> {
        Ok(BufWriter::with_capacity(1 << 20, File::create(&self.path)?))
    }

    /// Resumes the session with one prompt. The request must have at least `min_bytes` bytes, else the session was not
    /// loaded.
    fn resume(&self, context: &BenchContext, engine: &Engine, min_bytes: usize) -> Result<Metrics> {
        let size = fs::metadata(&self.path)?.len();
        context.server.set_script(ModelScript::short_reply());
        let options = LaunchOptions { resume: Some(&self.session), ..LaunchOptions::default() };
        let run = EngineProcess::run_one_prompt(context, engine, options)?;
        let steps = context.server.steps();
        let first = steps.first().context("the model got no request")?;
        ensure!(first.bytes >= min_bytes, "the first request has only {} bytes", first.bytes);
        Ok(vec![
            ("start to first request, ms", to_ms(first.request_at.saturating_duration_since(run.started_at))),
            ("CPU, ms", run.usage.cpu),
            ("largest process, MB", run.usage.largest),
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
    let dirs = fs::read_dir(home.join(".claude/projects")).into_iter().flatten().flatten();
    let files = dirs.flat_map(|dir| fs::read_dir(dir.path()).into_iter().flatten().flatten());
    files
        .map(|file| file.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
        .collect()
}

/// Transcript lines of a compaction: the boundary and the summary.
fn compaction_lines(transcript: &str, leaf: &str) -> Result<(Value, Value)> {
    let lines = transcript.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut line = lines
        .into_iter()
        .find(|line| line["type"] == "user" && line["message"]["content"].is_array())
        .context("the transcript has no prompt")?;
    let (boundary_uuid, summary_uuid) =
        ("eeeeeeee-0000-4000-8000-000000000001", "eeeeeeee-0000-4000-8000-000000000002");
    let boundary = json!({
        "parentUuid": null, "logicalParentUuid": leaf, "isSidechain": false, "type": "system",
        "subtype": "compact_boundary", "sessionId": line["sessionId"], "uuid": boundary_uuid, "timestamp": line["timestamp"],
        "compactMetadata": {"trigger": "auto", "preTokens": 150_000},
    });
    line["parentUuid"] = boundary_uuid.into();
    line["uuid"] = summary_uuid.into();
    line["isCompactSummary"] = true.into();
    line["message"] =
        json!({"role": "user", "content": [{"type": "text", "text": "Summary of the conversation."}]});
    Ok((boundary, line))
}
