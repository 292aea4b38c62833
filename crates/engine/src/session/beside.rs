//! What belongs to the conversation though it stands beside its path. Of calls that run side by side, the official
//! engine hangs each result on its own call: so all results but one stand beside the path, and so may parts of a reply.
//! What stands there because somebody went back to an earlier message does not belong.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{self, Read, Seek};

use whimbrel_wire::content::Block;

use super::index::{Index, Place, Span};
use super::line::Kind;
use super::path;
use super::reader::{Heard, Part, Reader};

/// A line of the conversation.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) span: Span,
    /// What is said in it, if anything.
    pub(super) heard: Option<Heard>,
    /// Whether that is for everybody to read, not only for the model.
    pub(super) is_said: bool,
}

/// Reads the lines of a path, and puts what belongs to them where it belongs: nothing that came after the last line that
/// is wanted, if one is.
pub(super) fn gather<R: Read + Seek>(
    index: &Index,
    reader: &mut Reader<R>,
    path: &[Place],
    last: Option<Place>,
) -> io::Result<Vec<Step>> {
    let mut steps: HashMap<Place, Step> = HashMap::with_capacity(path.len());
    for place in path {
        let node = index.node(*place);
        steps.insert(*place, Step { span: node.span, heard: reader.hear(node)?, is_said: node.is_said() });
    }
    let mut open = unanswered(steps.values());
    let mut after: HashMap<Place, Vec<Place>> = HashMap::new();
    let first = path.first().copied().unwrap_or_default();
    let dropped = dropped(index, path, &steps);
    for (place, node) in (first..).zip(&index.nodes[first as usize..]) {
        if last.is_some_and(|last| place > last) {
            break;
        }
        if !node.is_said() || steps.contains_key(&place) || is_within(&dropped, place) {
            continue;
        }
        let above = node.other.or_else(|| path::said_before(index, place));
        let Some((above, beside)) = above.and_then(|above| Some((above, steps.get(&above)?))) else {
            continue;
        };
        let Some(mut heard) = reader.hear(node)? else { continue };
        let belongs = match node.kind {
            Kind::User => {
                heard.said.blocks.retain(|block| answers(block).is_some_and(|id| open.remove(id)));
                !heard.said.blocks.is_empty()
            }
            Kind::Assistant | Kind::Boundary | Kind::Cleared | Kind::Link => is_same_reply(&heard, beside),
        };
        if belongs {
            open.extend(heard.said.blocks.iter().filter_map(calls).map(str::to_owned));
            after.entry(above).or_default().push(place);
            steps.insert(place, Step { span: node.span, heard: Some(heard), is_said: true });
        }
    }
    let mut todo: Vec<Place> = path.iter().rev().copied().collect();
    let mut gathered = Vec::with_capacity(steps.len());
    while let Some(place) = todo.pop() {
        gathered.extend(steps.remove(&place));
        todo.extend(after.remove(&place).into_iter().flatten().rev());
    }
    Ok(gathered)
}

/// Which lines were left behind when somebody went back: those between a prompt and the message that it hangs on. A prompt
/// hangs on the last thing said, unless it is meant to follow an earlier one.
fn dropped(index: &Index, path: &[Place], steps: &HashMap<Place, Step>) -> BTreeMap<Place, Place> {
    let role = |place: &Place| Some(steps.get(place)?.heard.as_ref()?.role);
    let prompts = path.iter().filter(|place| role(place) == Some(Part::Prompt));
    prompts.filter_map(|prompt| Some((path::said_before(index, *prompt)?, *prompt))).collect()
}

fn is_within(gaps: &BTreeMap<Place, Place>, place: Place) -> bool {
    gaps.range(..place).next_back().is_some_and(|(_, end)| place < *end)
}

/// The calls that have no result.
fn unanswered<'a>(steps: impl Iterator<Item = &'a Step> + Clone) -> HashSet<String> {
    let blocks = steps.filter_map(|step| step.heard.as_ref()).flat_map(|heard| &heard.said.blocks);
    let answered: HashSet<&str> = blocks.clone().filter_map(answers).collect();
    blocks.filter_map(calls).filter(|id| !answered.contains(id)).map(str::to_owned).collect()
}

fn is_same_reply(heard: &Heard, beside: &Step) -> bool {
    let reply = beside.heard.as_ref().and_then(|heard| heard.said.reply.as_ref());
    reply.is_some() && reply == heard.said.reply.as_ref()
}

fn answers(block: &Block) -> Option<&str> {
    match block {
        Block::ToolResult { tool_use_id, .. } => Some(tool_use_id),
        _ => None,
    }
}

fn calls(block: &Block) -> Option<&str> {
    match block {
        Block::ToolUse { id, .. } => Some(id),
        _ => None,
    }
}
