//! Generates long transcripts from a short one that an engine wrote: one turn is repeated, each copy with new ids and
//! with the previous copy as parent.

use std::collections::HashMap;
use std::io::{self, Write};

use anyhow::{Context, Result, ensure};

/// A transcript of a few tool turns, split into parts.
pub(super) struct TranscriptSeed<'a> {
    /// Everything before the repeated turn.
    head: &'a str,
    /// The repeated turn.
    turn: &'a str,
    /// Everything after it.
    tail: &'a str,
    /// Ids introduced by the turn before: a copy refers to their replacements.
    previous_ids: Vec<&'a str>,
    /// Ids introduced by the repeated turn.
    own_ids: Vec<&'a str>,
}

impl<'a> TranscriptSeed<'a> {
    /// Splits a transcript of at least four tool turns.
    pub(super) fn new(text: &'a str) -> Result<Self> {
        let starts = turn_starts(text);
        ensure!(starts.len() >= 4, "the transcript has only {} turns", starts.len());
        let mut pairs = starts[1..].windows(3).map(|starts| Self::from_turn_starts(text, starts));
        // Some turns introduce additional ids that the next turn does not have.
        let repeatable = pairs.find(|seed| seed.previous_ids.len() == seed.own_ids.len());
        repeatable.context("no two turns of the transcript have the same ids")
    }

    /// Splits at three turn starts; the second of the two turns is repeated.
    fn from_turn_starts(text: &'a str, starts: &[usize]) -> Self {
        let known: Vec<&str> = find_ids(&text[..starts[0]]).collect();
        let (first, turn) = (&text[starts[0]..starts[1]], &text[starts[1]..starts[2]]);
        let previous_ids = new_ids(first, &known);
        let own_ids = new_ids(turn, &[&known[..], &previous_ids].concat());
        Self { head: &text[..starts[1]], turn, tail: &text[starts[2]..], previous_ids, own_ids }
    }

    /// Writes a transcript with this number of copies.
    pub(super) fn write_transcript(&self, turns: usize, out: &mut impl Write) -> io::Result<()> {
        let mut copies = self.start_copies(out)?;
        for _ in 0..turns {
            copies.write_turn(out)?;
        }
        copies.finish(out)
    }

    /// Writes the part before the copies.
    pub(super) fn start_copies(&self, out: &mut impl Write) -> io::Result<TurnCopier<'a, '_>> {
        out.write_all(self.head.as_bytes())?;
        let last = self.previous_ids.iter().map(|id| (*id).to_owned()).collect();
        Ok(TurnCopier { seed: self, last_ids: last, copy_count: 0 })
    }
}

/// A transcript being written.
pub(super) struct TurnCopier<'a, 's> {
    seed: &'s TranscriptSeed<'a>,
    /// Ids of the last copy.
    last_ids: Vec<String>,
    copy_count: u64,
}

impl TurnCopier<'_, '_> {
    /// Writes one more copy and returns its size.
    pub(super) fn write_turn(&mut self, out: &mut impl Write) -> io::Result<usize> {
        self.copy_count += 1;
        let fresh_ids: Vec<String> =
            self.seed.own_ids.iter().map(|id| renumber_id(id, self.copy_count)).collect();
        let mut replacements: HashMap<&str, &str> =
            zip_ids(&self.seed.previous_ids, &self.last_ids).collect();
        replacements.extend(zip_ids(&self.seed.own_ids, &fresh_ids));
        let text = replace_ids(self.seed.turn, &replacements);
        out.write_all(text.as_bytes())?;
        self.last_ids = fresh_ids;
        Ok(text.len())
    }

    /// Writes the part after the copies.
    pub(super) fn finish(self, out: &mut impl Write) -> io::Result<()> {
        let replacements = zip_ids(&self.seed.own_ids, &self.last_ids).collect();
        out.write_all(replace_ids(self.seed.tail, &replacements).as_bytes())?;
        out.flush()
    }

    /// Sets the parent of the next copy.
    pub(super) fn set_parent(&mut self, uuid: &str) -> Result<()> {
        let index = self.last_uuid_index()?;
        uuid.clone_into(&mut self.last_ids[index]);
        Ok(())
    }

    /// The uuid of the last line written.
    pub(super) fn last_uuid(&self) -> Result<&str> {
        Ok(&self.last_ids[self.last_uuid_index()?])
    }

    /// Index of the last line's uuid among the ids of the turn.
    fn last_uuid_index(&self) -> Result<usize> {
        let lines = self.seed.turn.lines().rev();
        let mut uuids = lines.filter_map(|line| {
            let value: serde_json::Value = serde_json::from_str(line).ok()?;
            value["uuid"].as_str().map(str::to_owned)
        });
        let old = uuids.next().context("the turn has no line with a uuid")?;
        self.seed.own_ids.iter().position(|id| *id == old).context("the uuid was not introduced by the turn")
    }
}

fn zip_ids<'a>(from: &'a [&'a str], to: &'a [String]) -> impl Iterator<Item = (&'a str, &'a str)> {
    from.iter().copied().zip(to.iter().map(String::as_str))
}

/// Offsets of the lines that are the first to name a tool call.
fn turn_starts(text: &str) -> Vec<usize> {
    let mut calls: Vec<&str> = Vec::new();
    let mut starts = Vec::new();
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        let fresh_ids: Vec<&str> =
            find_ids(line).filter(|id| id.starts_with("toolu_") && !calls.contains(id)).collect();
        if !fresh_ids.is_empty() {
            starts.push(offset);
            calls.extend(fresh_ids);
        }
        offset += line.len();
    }
    starts
}

/// Ids of a text that are not in `known`, in order.
fn new_ids<'a>(text: &'a str, known: &[&str]) -> Vec<&'a str> {
    let mut found = Vec::new();
    for id in find_ids(text) {
        if !known.contains(&id) && !found.contains(&id) {
            found.push(id);
        }
    }
    found
}

fn find_ids(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !is_id_char(c)).filter(|word| is_id(word))
}

fn is_id_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

fn is_id(word: &str) -> bool {
    let uuid = word.len() == 36 && word.bytes().filter(|byte| *byte == b'-').count() == 4;
    uuid || ["toolu_", "msg_", "req_"].iter().any(|start| word.starts_with(start))
}

/// Derives another id of the same form.
fn renumber_id(id: &str, number: u64) -> String {
    match id.split_once('_') {
        Some((kind, rest)) => format!("{kind}_{number:08}{rest}"),
        // The first half is the number of the copy, the second distinguishes the ids within a copy.
        None => format!("{:08x}-{:04x}{}", number & 0xffff_ffff, number >> 32, &id[13..]),
    }
}

fn replace_ids(text: &str, replacements: &HashMap<&str, &str>) -> String {
    let mut out = String::with_capacity(text.len() + 64);
    let mut rest = text;
    while let Some(start) = rest.find(is_id_char) {
        let (before, word) = rest.split_at(start);
        let end = word.find(|c: char| !is_id_char(c)).unwrap_or(word.len());
        let (word, after) = word.split_at(end);
        out.push_str(before);
        out.push_str(replacements.get(word).copied().unwrap_or(word));
        rest = after;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// A transcript of tool turns, each a call and a result.
    fn transcript(turns: usize) -> String {
        let uuid = |number: usize| format!("{number:08x}-1111-4222-8333-{number:012x}");
        let mut text = format!("{{\"uuid\":\"{}\",\"parentUuid\":null}}\n", uuid(0));
        for turn in 0..turns {
            let (call, result) = (2 * turn + 1, 2 * turn + 2);
            text += &format!(
                "{{\"uuid\":\"{}\",\"parentUuid\":\"{}\",\"id\":\"toolu_{turn}\",\"of\":\"msg_{turn}\"}}\n",
                uuid(call),
                uuid(call - 1)
            );
            text += &format!(
                "{{\"uuid\":\"{}\",\"parentUuid\":\"{}\",\"for\":\"toolu_{turn}\"}}\n",
                uuid(result),
                uuid(call)
            );
        }
        text
    }

    #[test]
    fn each_copy_has_the_previous_one_as_parent() -> Result<()> {
        let short = transcript(4);
        let mut long = Vec::new();
        TranscriptSeed::new(&short)?.write_transcript(50, &mut long)?;
        let lines: Vec<Value> =
            String::from_utf8(long)?.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
        assert_eq!(lines.len(), 1 + 2 * (2 + 50 + 1));
        for pair in lines.windows(2) {
            assert_eq!(pair[1]["parentUuid"], pair[0]["uuid"]);
        }
        let mut uuids: Vec<&str> = lines.iter().filter_map(|line| line["uuid"].as_str()).collect();
        uuids.sort_unstable();
        uuids.dedup();
        assert_eq!(uuids.len(), lines.len(), "ids are unique");
        for pair in lines[1..].chunks(2) {
            assert_eq!(pair[0]["id"], pair[1]["for"]);
        }
        Ok(())
    }

    #[test]
    fn short_transcript_is_rejected() {
        assert!(TranscriptSeed::new(&transcript(3)).is_err());
    }
}
