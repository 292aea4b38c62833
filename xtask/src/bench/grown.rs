//! Long transcripts, made of a short one that an engine wrote itself: one of its turns is repeated, each copy with ids of its
//! own and hanging on the one before.

use std::collections::HashMap;
use std::io::{self, Write};

use anyhow::{Context, Result, ensure};

/// A transcript of a few tool turns, taken apart.
pub(super) struct Seed<'a> {
    /// Everything before the turn that is repeated.
    head: &'a str,
    /// The turn that is repeated.
    turn: &'a str,
    /// Everything after it.
    tail: &'a str,
    /// The ids that the turn before brought in: a copy hangs on what stands in their place.
    before: Vec<&'a str>,
    /// The ids that the turn brings in.
    own: Vec<&'a str>,
}

impl<'a> Seed<'a> {
    /// Takes a transcript of at least four tool turns apart.
    pub(super) fn new(text: &'a str) -> Result<Self> {
        let starts = starts_of_turns(text);
        ensure!(starts.len() >= 4, "the transcript has only {} turns", starts.len());
        let mut pairs = starts[1..].windows(3).map(|starts| Self::at(text, starts));
        // Some turns bring something along that the next one does not have.
        let alike = pairs.find(|seed| seed.before.len() == seed.own.len());
        alike.context("no two turns of the transcript are alike")
    }

    /// Repeats the second of two turns that begin and end here.
    fn at(text: &'a str, starts: &[usize]) -> Self {
        let known: Vec<&str> = ids(&text[..starts[0]]).collect();
        let (first, turn) = (&text[starts[0]..starts[1]], &text[starts[1]..starts[2]]);
        let before = new_ids(first, &known);
        let own = new_ids(turn, &[&known[..], &before].concat());
        Self { head: &text[..starts[1]], turn, tail: &text[starts[2]..], before, own }
    }

    /// Writes a transcript with so many turns.
    pub(super) fn grow(&self, turns: usize, out: &mut impl Write) -> io::Result<()> {
        let mut copies = self.begin(out)?;
        for _ in 0..turns {
            copies.turn(out)?;
        }
        copies.end(out)
    }

    /// Writes the beginning.
    pub(super) fn begin(&self, out: &mut impl Write) -> io::Result<Copies<'a, '_>> {
        out.write_all(self.head.as_bytes())?;
        let last = self.before.iter().map(|id| (*id).to_owned()).collect();
        Ok(Copies { seed: self, last, number: 0 })
    }
}

/// A transcript that is being written.
pub(super) struct Copies<'a, 's> {
    seed: &'s Seed<'a>,
    /// The ids of the last copy.
    last: Vec<String>,
    number: u64,
}

impl Copies<'_, '_> {
    /// Writes one more turn; gives its size.
    pub(super) fn turn(&mut self, out: &mut impl Write) -> io::Result<usize> {
        self.number += 1;
        let fresh: Vec<String> = self.seed.own.iter().map(|id| renewed(id, self.number)).collect();
        let mut names: HashMap<&str, &str> = pairs(&self.seed.before, &self.last).collect();
        names.extend(pairs(&self.seed.own, &fresh));
        let text = renamed(self.seed.turn, &names);
        out.write_all(text.as_bytes())?;
        self.last = fresh;
        Ok(text.len())
    }

    /// Writes what follows the last turn.
    pub(super) fn end(self, out: &mut impl Write) -> io::Result<()> {
        let names = pairs(&self.seed.own, &self.last).collect();
        out.write_all(renamed(self.seed.tail, &names).as_bytes())?;
        out.flush()
    }

    /// Lets the next turn hang on another line than the last one.
    pub(super) fn hang_on(&mut self, uuid: &str) -> Result<()> {
        let place = self.place_of_leaf()?;
        uuid.clone_into(&mut self.last[place]);
        Ok(())
    }

    /// The id of the last line that was written.
    pub(super) fn leaf(&self) -> Result<&str> {
        Ok(&self.last[self.place_of_leaf()?])
    }

    /// Which of the turn's ids is that of its last line.
    fn place_of_leaf(&self) -> Result<usize> {
        let lines = self.seed.turn.lines().rev();
        let mut uuids = lines.filter_map(|line| {
            let value: serde_json::Value = serde_json::from_str(line).ok()?;
            value["uuid"].as_str().map(str::to_owned)
        });
        let old = uuids.next().context("the turn has no line with an id")?;
        self.seed.own.iter().position(|id| *id == old).context("that id is not the turn's own")
    }
}

fn pairs<'a>(from: &'a [&'a str], to: &'a [String]) -> impl Iterator<Item = (&'a str, &'a str)> {
    from.iter().copied().zip(to.iter().map(String::as_str))
}

/// Where each line begins that is the first to name a call.
fn starts_of_turns(text: &str) -> Vec<usize> {
    let mut calls: Vec<&str> = Vec::new();
    let mut starts = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let fresh: Vec<&str> =
            ids(line).filter(|id| id.starts_with("toolu_") && !calls.contains(id)).collect();
        if !fresh.is_empty() {
            starts.push(at);
            calls.extend(fresh);
        }
        at += line.len();
    }
    starts
}

/// The ids that a text brings in, in their order.
fn new_ids<'a>(text: &'a str, known: &[&str]) -> Vec<&'a str> {
    let mut found = Vec::new();
    for id in ids(text) {
        if !known.contains(&id) && !found.contains(&id) {
            found.push(id);
        }
    }
    found
}

fn ids(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !is_of_id(letter)).filter(|word| is_id(word))
}

fn is_of_id(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-')
}

fn is_id(word: &str) -> bool {
    let uuid = word.len() == 36 && word.bytes().filter(|byte| *byte == b'-').count() == 4;
    uuid || ["toolu_", "msg_", "req_"].iter().any(|start| word.starts_with(start))
}

/// Another id of the same kind.
fn renewed(id: &str, number: u64) -> String {
    match id.split_once('_') {
        Some((kind, rest)) => format!("{kind}_{number:08}{rest}"),
        // The first half counts, the second tells the ids of a copy apart.
        None => format!("{:08x}-{:04x}{}", number & 0xffff_ffff, number >> 32, &id[13..]),
    }
}

fn renamed(text: &str, names: &HashMap<&str, &str>) -> String {
    let mut out = String::with_capacity(text.len() + 64);
    let mut rest = text;
    while let Some(start) = rest.find(is_of_id) {
        let (before, word) = rest.split_at(start);
        let end = word.find(|letter: char| !is_of_id(letter)).unwrap_or(word.len());
        let (word, after) = word.split_at(end);
        out.push_str(before);
        out.push_str(names.get(word).copied().unwrap_or(word));
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
    fn every_copy_hangs_on_the_one_before() -> Result<()> {
        let short = transcript(4);
        let mut long = Vec::new();
        Seed::new(&short)?.grow(50, &mut long)?;
        let lines: Vec<Value> =
            String::from_utf8(long)?.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
        assert_eq!(lines.len(), 1 + 2 * (2 + 50 + 1));
        for pair in lines.windows(2) {
            assert_eq!(pair[1]["parentUuid"], pair[0]["uuid"]);
        }
        let mut uuids: Vec<&str> = lines.iter().filter_map(|line| line["uuid"].as_str()).collect();
        uuids.sort_unstable();
        uuids.dedup();
        assert_eq!(uuids.len(), lines.len(), "each has an id of its own");
        for pair in lines[1..].chunks(2) {
            assert_eq!(pair[0]["id"], pair[1]["for"]);
        }
        Ok(())
    }

    #[test]
    fn a_transcript_that_is_too_short_is_refused() {
        assert!(Seed::new(&transcript(3)).is_err());
    }
}
