//! Long sessions that go on, and many that are listed.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::bench::clock::ms;
use crate::bench::engine::{Engine, Start};
use crate::bench::figures::Figures;
use crate::bench::grown::Seed;
use crate::bench::lab::Lab;
use crate::bench::run::{Run, by_hand};
use crate::bench::script::{Call, Script};

/// How many tool turns the long session has: two messages each.
const TURNS: usize = 2500;

/// How many calls the session has of which the long ones are made.
const CALLS: usize = 10;

/// How large the largest transcript is.
const HUGE: u64 = 2_000_000_000;

/// How many turns follow its last summary.
const LIVE: usize = 50;

/// How many sessions are listed.
const SESSIONS: usize = 10_000;

/// A session of 5,000 messages.
pub(super) fn long(lab: &Lab, engine: &Engine) -> Result<Option<Figures>> {
    let short = Transcript::of(lab, engine)?;
    let text = fs::read_to_string(&short.path)?;
    Seed::new(&text)?.grow(TURNS - CALLS, &mut short.rewritten()?)?;
    let figures = short.resume(lab, engine, 1_000_000)?;
    short.remove()?;
    Ok(Some(figures))
}

/// A session of 2 GB, most of which a summary has replaced.
pub(super) fn huge(lab: &Lab, engine: &Engine) -> Result<Option<Figures>> {
    if !is_ours(engine) {
        return Ok(None);
    }
    let short = Transcript::of(lab, engine)?;
    let text = fs::read_to_string(&short.path)?;
    let seed = Seed::new(&text)?;
    let mut out = short.rewritten()?;
    let mut copies = seed.begin(&mut out)?;
    let mut written = text.len() as u64;
    while written < HUGE {
        written += copies.turn(&mut out)? as u64;
    }
    let (boundary, summary) = summarised(&text, copies.leaf()?)?;
    writeln!(out, "{boundary}\n{summary}")?;
    // What follows hangs on the summary.
    copies.hang_on(summary["uuid"].as_str().unwrap_or_default())?;
    for _ in 0..LIVE {
        copies.turn(&mut out)?;
    }
    copies.end(&mut out)?;
    drop(out);
    let figures = short.resume(lab, engine, 10_000)?;
    short.remove()?;
    Ok(Some(figures))
}

/// The list of 10,000 sessions, all of them and the newest 20.
pub(super) fn list(lab: &Lab, engine: &Engine) -> Result<Option<Figures>> {
    if !is_ours(engine) {
        return Ok(None);
    }
    let short = Transcript::of(lab, engine)?;
    let text = fs::read(&short.path)?;
    let folder = short.path.parent().context("a transcript lies in a folder")?.to_path_buf();
    let name = |number: usize| folder.join(format!("{number:08x}-0000-4000-8000-000000000000.jsonl"));
    for number in 0..SESSIONS {
        fs::write(name(number), &text)?;
    }
    let all = by_hand(lab, engine, &["sessions", "list", "--limit", "0", "--json"])?;
    let newest = by_hand(lab, engine, &["sessions", "list"])?;
    for number in 0..SESSIONS {
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

/// Others keep no such transcripts, or list none.
fn is_ours(engine: &Engine) -> bool {
    engine.program.file_stem().is_some_and(|name| name == "whimbrel")
}

/// A transcript that an engine wrote of a session with a few calls.
struct Transcript {
    path: PathBuf,
    session: String,
}

impl Transcript {
    fn of(lab: &Lab, engine: &Engine) -> Result<Self> {
        let before = transcripts(&engine.home);
        lab.server.play(Script::repeat(CALLS, |number| Call::bash(&format!("printf '%0400d' {number}"))));
        Run::whole(lab, engine, Start::default())?;
        let after = transcripts(&engine.home);
        let path = after.into_iter().find(|path| !before.contains(path)).context("no transcript was kept")?;
        let session = path.file_stem().context("a transcript has a name")?.to_string_lossy().into_owned();
        Ok(Self { path, session })
    }

    /// The file, empty and to be written anew.
    fn rewritten(&self) -> Result<BufWriter<File>> {
        Ok(BufWriter::with_capacity(1 << 20, File::create(&self.path)?))
    }

    /// Goes on with the session and says one thing. The request must be so large, or the session was not read.
    fn resume(&self, lab: &Lab, engine: &Engine, least: usize) -> Result<Figures> {
        let size = fs::metadata(&self.path)?.len();
        lab.server.play(Script::word());
        let start = Start { resume: Some(&self.session), ..Start::default() };
        let whole = Run::whole(lab, engine, start)?;
        let steps = lab.server.steps();
        let first = steps.first().context("the model was not asked")?;
        ensure!(first.bytes >= least, "the first request has only {} bytes", first.bytes);
        Ok(vec![
            ("start to first request, ms", ms(first.asked.saturating_duration_since(whole.began))),
            ("CPU, ms", whole.used.cpu),
            ("largest process, MB", whole.used.largest),
            ("transcript, MB", size as f64 / 1e6),
            ("first request, bytes", first.bytes as f64),
        ])
    }

    fn remove(self) -> Result<()> {
        Ok(fs::remove_file(self.path)?)
    }
}

/// The transcripts in a home.
fn transcripts(home: &Path) -> Vec<PathBuf> {
    let folders = fs::read_dir(home.join(".claude/projects")).into_iter().flatten().flatten();
    let files = folders.flat_map(|folder| fs::read_dir(folder.path()).into_iter().flatten().flatten());
    files.map(|file| file.path()).filter(|path| path.extension().is_some_and(|end| end == "jsonl")).collect()
}

/// The lines that stand for a summary: where it happened, and what it says.
fn summarised(transcript: &str, leaf: &str) -> Result<(Value, Value)> {
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
