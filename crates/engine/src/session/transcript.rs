//! A transcript as it lies on disk, read without holding it in memory: which lines make up the conversation, and what
//! they say. Lines that make no sense are passed over.
//!
//! The conversation is what the official SDKs show: from the last line of the main branch back along the parents, with
//! calls that ran side by side put back where they belong.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use whimbrel_wire::RawJson;

use crate::files;

/// The longest line that is read.
const LONGEST: usize = 64 * 1024 * 1024;

/// A message of a conversation, in the form in which the official SDKs give it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Message {
    /// `user` or `assistant`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its id.
    pub uuid: String,
    /// The session.
    pub session_id: String,
    /// What was said.
    pub message: Value,
    /// Always null in the main conversation.
    pub parent_tool_use_id: Option<String>,
    /// When it was said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<String>,
}

/// A line as far as the tree of lines goes. What has another type than it should counts as not there.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Line {
    #[serde(rename = "type")]
    kind: Value,
    uuid: Value,
    parent_uuid: Value,
    session_id: Value,
    is_sidechain: Value,
    is_meta: Value,
    team_name: Value,
    #[serde(rename = "sourceToolAssistantUUID")]
    source: Value,
    timestamp: Value,
    message: Value,
}

/// Where a line stands in the tree.
struct Node {
    uuid: String,
    parent: Option<String>,
    /// The reply that it is a block of.
    reply: Option<String>,
    /// The line whose call it answers.
    answers: Option<String>,
    speaks: bool,
    visible: bool,
    start: u64,
    length: usize,
}

/// A transcript whose lines are known.
pub struct Transcript {
    file: File,
    /// The lines of the conversation, in order: where each begins, and how long it is.
    order: Vec<(u64, usize)>,
}

impl Transcript {
    /// Opens a transcript and finds the lines of its conversation.
    pub fn open(path: &Path) -> io::Result<Self> {
        let (file, _) = files::open_for_parts(path)?;
        let mut nodes = Vec::new();
        each_line(&file, |start, line| {
            nodes.extend(node(start, line));
            true
        })?;
        Ok(Self { file, order: conversation(&nodes) })
    }

    /// The messages, in order.
    pub fn messages(&self) -> impl Iterator<Item = io::Result<Message>> {
        self.order.iter().filter_map(|(start, length)| {
            let line = files::part(&self.file, *start, *length);
            line.map(|line| message(&line)).transpose()
        })
    }
}

/// The messages of a conversation whose lines are at hand, in order.
pub fn messages_of(lines: &[RawJson]) -> Vec<Message> {
    let nodes: Vec<Node> =
        (0..).zip(lines).filter_map(|(at, line)| node(at, line.as_str().as_bytes())).collect();
    let order = conversation(&nodes).into_iter();
    let line = |at: u64| lines.get(usize::try_from(at).ok()?);
    order.filter_map(|(at, _)| said(line(at)?)).collect()
}

/// What a line says; none if it is not part of the conversation.
pub fn said(line: &RawJson) -> Option<Message> {
    message(line.as_str().as_bytes())
}

/// Looks at what was said in a transcript, line by line in the order of the file, until `look` says false.
pub fn scan(
    path: &Path,
    maybe: impl Fn(&[u8]) -> bool,
    mut look: impl FnMut(Message) -> bool,
) -> io::Result<()> {
    let (file, _) = files::open_for_parts(path)?;
    each_line(&file, |_, line| match maybe(line).then(|| message(line)).flatten() {
        Some(message) => look(message),
        None => true,
    })
}

/// Gives each line, with where it begins, until it is told to stop. A line that is far too long is passed over.
fn each_line(file: &File, mut take: impl FnMut(u64, &[u8]) -> bool) -> io::Result<()> {
    let mut reader = BufReader::with_capacity(64 * 1024, file);
    let (mut start, mut line) = (0, Vec::new());
    loop {
        line.clear();
        let read = reader.by_ref().take(LONGEST as u64).read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(());
        }
        let mut length = read as u64;
        if line.last() != Some(&b'\n') && read == LONGEST {
            length += reader.skip_until(b'\n')? as u64;
        } else if !take(start, line.trim_ascii_end()) {
            return Ok(());
        }
        start += length;
    }
}

fn read(line: &[u8]) -> Option<Line> {
    serde_json::from_slice(line).ok()
}

/// A text that is not empty.
fn text(value: Value) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() => Some(text),
        _ => None,
    }
}

/// Whether a switch is set, however it is spelled.
fn is_set(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::Bool(true) | Value::Array(_) | Value::Object(_) => true,
    }
}

fn node(start: u64, bytes: &[u8]) -> Option<Node> {
    let line = read(bytes)?;
    let kind = text(line.kind)?;
    let speaks = matches!(kind.as_str(), "user" | "assistant");
    if !speaks && !matches!(kind.as_str(), "progress" | "system" | "attachment") {
        return None;
    }
    let parent = text(line.parent_uuid);
    let is_result = kind == "user" && has_block(&line.message, "tool_result");
    Some(Node {
        uuid: text(line.uuid)?,
        reply: line.message["id"].as_str().filter(|_| kind == "assistant").map(str::to_owned),
        answers: text(line.source).or_else(|| parent.clone()).filter(|_| is_result),
        visible: speaks && ![&line.is_sidechain, &line.is_meta, &line.team_name].into_iter().any(is_set),
        parent,
        speaks,
        start,
        length: bytes.len(),
    })
}

fn has_block(message: &Value, kind: &str) -> bool {
    message["content"].as_array().is_some_and(|blocks| blocks.iter().any(|block| block["type"] == kind))
}

/// What a line says; none if it is not part of the conversation.
fn message(bytes: &[u8]) -> Option<Message> {
    let line = read(bytes)?;
    let kind = text(line.kind).filter(|kind| matches!(kind.as_str(), "user" | "assistant"))?;
    if [&line.is_sidechain, &line.is_meta, &line.team_name].into_iter().any(is_set) {
        return None;
    }
    Some(Message {
        kind,
        uuid: text(line.uuid)?,
        session_id: text(line.session_id).unwrap_or_default(),
        message: line.message,
        parent_tool_use_id: None,
        timestamp: text(line.timestamp),
    })
}

/// The lines of the conversation, in order.
fn conversation(nodes: &[Node]) -> Vec<(u64, usize)> {
    // Of two lines with one id the later counts.
    let by_uuid: HashMap<&str, usize> =
        nodes.iter().enumerate().map(|(at, node)| (node.uuid.as_str(), at)).collect();
    let up = |at: usize| nodes[at].parent.as_deref().and_then(|parent| by_uuid.get(parent)).copied();
    let Some(leaf) = leaf(nodes, up) else { return Vec::new() };
    let mut chain = walk(leaf, up);
    chain.reverse();
    let on_chain: HashSet<usize> = chain.iter().copied().collect();
    let aside = left_aside(nodes, &by_uuid, &chain, &on_chain);
    let mut order = Vec::new();
    for at in chain {
        order.push(at);
        order.extend(aside.get(&at).into_iter().flatten());
    }
    let shown = order.into_iter().filter(|at| nodes[*at].visible);
    shown.map(|at| (nodes[at].start, nodes[at].length)).collect()
}

/// The steps from a line to its root. A tree that somebody has tied into a circle is walked once.
fn walk(from: usize, up: impl Fn(usize) -> Option<usize>) -> Vec<usize> {
    let mut seen = HashSet::new();
    std::iter::successors(Some(from), |at| up(*at)).take_while(|at| seen.insert(*at)).collect()
}

/// The last line that ends a branch of the main conversation, or of any.
fn leaf(nodes: &[Node], up: impl Fn(usize) -> Option<usize>) -> Option<usize> {
    let parents: HashSet<&str> = nodes.iter().filter_map(|node| node.parent.as_deref()).collect();
    let ends = (0..nodes.len()).filter(|at| !parents.contains(nodes[*at].uuid.as_str()));
    let spoken = ends.filter_map(|end| walk(end, &up).into_iter().find(|at| nodes[*at].speaks));
    let spoken: Vec<usize> = spoken.collect();
    spoken.iter().copied().filter(|at| nodes[*at].visible).max().or_else(|| spoken.into_iter().max())
}

/// Blocks of a reply, and answers to its calls, that the walk has not met because they ran side by side: by the line of
/// the conversation that they follow.
fn left_aside(
    nodes: &[Node],
    by_uuid: &HashMap<&str, usize>,
    chain: &[usize],
    on_chain: &HashSet<usize>,
) -> HashMap<usize, Vec<usize>> {
    let reply = |at: usize| nodes[at].reply.as_deref();
    // The last line of each reply on the chain.
    let anchors: HashMap<&str, usize> =
        chain.iter().filter_map(|at| reply(*at).map(|reply| (reply, *at))).collect();
    let mut aside: HashMap<usize, Vec<usize>> = HashMap::new();
    let off_chain = || (0..nodes.len()).filter(|at| !on_chain.contains(at));
    for at in off_chain() {
        if let Some(anchor) = reply(at).and_then(|reply| anchors.get(reply)) {
            aside.entry(*anchor).or_default().push(at);
        }
    }
    for at in off_chain() {
        let call = nodes[at].answers.as_deref().and_then(|call| by_uuid.get(call)).copied();
        if let Some(anchor) = call.and_then(reply).and_then(|reply| anchors.get(reply)) {
            aside.entry(*anchor).or_default().push(at);
        }
    }
    aside
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(lines: &[Value]) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.jsonl");
        let text: String = lines
            .iter()
            .map(|line| line.as_str().map_or_else(|| line.to_string(), str::to_owned) + "\n")
            .collect();
        std::fs::write(&path, text.trim_end()).unwrap();
        let transcript = Transcript::open(&path).unwrap();
        transcript.messages().map(|message| message.unwrap().uuid).collect()
    }

    fn line(kind: &str, uuid: &str, parent: Option<&str>) -> Value {
        json!({"type": kind, "uuid": uuid, "parentUuid": parent, "message": {"role": kind, "content": "x"}})
    }

    fn block(uuid: &str, parent: &str, reply: &str) -> Value {
        json!({"type": "assistant", "uuid": uuid, "parentUuid": parent, "message": {"id": reply, "content": []}})
    }

    fn result(uuid: &str, parent: &str) -> Value {
        json!({"type": "user", "uuid": uuid, "parentUuid": parent, "message": {"content": [{"type": "tool_result"}]}})
    }

    #[test]
    fn the_conversation_is_the_last_branch() {
        let lines = [
            line("user", "a", None),
            line("assistant", "b", Some("a")),
            line("user", "old", Some("b")),
            line("user", "new", Some("b")),
            line("attachment", "n", Some("new")),
            line("assistant", "end", Some("n")),
            json!({"type": "custom-title", "customTitle": "x"}),
        ];
        assert_eq!(said(&lines), ["a", "b", "new", "end"]);
    }

    #[test]
    fn garbage_circles_and_gaps_do_no_harm() {
        let lines = [
            json!("not JSON"),
            json!("\u{0}\u{0}\u{0}"),
            line("user", "a", Some("gone")),
            json!({"type": "user", "uuid": 7, "isMeta": "yes"}),
            line("assistant", "b", Some("a")),
            json!({"type": "user", "uuid": "meta", "parentUuid": "b", "isMeta": true, "message": {}}),
            line("user", "c", Some("meta")),
            json!("{\"type\":\"assistant\",\"uuid\":\"torn"),
        ];
        assert_eq!(said(&lines), ["a", "b", "c"]);
        assert_eq!(said(&[line("user", "x", Some("y")), line("assistant", "y", Some("x"))]), [""; 0]);
        let circle =
            [line("user", "x", Some("y")), line("user", "y", Some("x")), line("user", "z", Some("y"))];
        assert_eq!(said(&circle), ["x", "y", "z"]);
        assert_eq!(said(&[]), [""; 0]);
    }

    #[test]
    fn calls_that_ran_side_by_side_are_put_back() {
        let lines = [
            line("user", "a", None),
            block("call-1", "a", "r"),
            block("call-2", "call-1", "r"),
            result("result-1", "call-1"),
            result("result-2", "call-2"),
            block("end", "result-1", "s"),
        ];
        assert_eq!(said(&lines), ["a", "call-1", "call-2", "result-2", "result-1", "end"]);
    }

    #[test]
    fn a_subagent_is_not_heard() {
        let mut side = line("assistant", "side", Some("b"));
        side["isSidechain"] = true.into();
        assert_eq!(said(&[line("user", "a", None), line("assistant", "b", Some("a")), side]), ["a", "b"]);
    }
}
