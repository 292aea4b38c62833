//! Selects the last entry to load, and checks that `--resume-drops-turn` drops only the turn that the host named.

use std::io::{Read, Seek};

use crate::load::branch;
use crate::load::entry_reader::{EntryReader, TurnRole};
use crate::load::index::{Index, NodeId};
use crate::load::{LoadError, LoadRange};

/// The last entry to load.
pub(crate) fn select_leaf<R: Read + Seek>(
    index: &Index,
    reader: &mut EntryReader<R>,
    until: &LoadRange,
) -> Result<Option<NodeId>, LoadError> {
    let last = branch::find_resume_point(index);
    let find = |uuid: &String| index.find(uuid).ok_or_else(|| LoadError::NoSuchMessage(uuid.clone()));
    let (at, drops) = (until.last_message.as_ref().map(find).transpose()?, until.dropped_prompt.as_ref());
    let Some(drops) = drops else { return Ok(at.or(last)) };
    let prompt = find(drops)?;
    let at = at.or_else(|| branch::previous_message(index, prompt));
    let path = branch::branch_to(index, last);
    let kept = match at {
        None => 0,
        Some(at) => path.iter().position(|place| *place == at).map(|place| place + 1).ok_or_else(|| {
            LoadError::Rejected("the message to go back to is not in the conversation as it stands.".into())
        })?,
    };
    check_dropped_entries(index, reader, &path[kept..], prompt)?;
    Ok(at)
}

/// Checks that all dropped entries belong to the turn of a prompt.
fn check_dropped_entries<R: Read + Seek>(
    index: &Index,
    reader: &mut EntryReader<R>,
    dropped: &[NodeId],
    prompt: NodeId,
) -> Result<(), LoadError> {
    let mut begun = false;
    for place in dropped {
        begun |= *place == prompt;
        let Some(heard) = reader.read_message(index.node(*place))? else { continue };
        let foreign = match heard.role {
            TurnRole::Prompt => *place != prompt,
            TurnRole::ToolResult | TurnRole::Reply => !begun,
            TurnRole::EngineNote => false,
        };
        if foreign {
            return Err(LoadError::Rejected(format!(
                "the message {} would be lost too, and is no part of that turn. Resume without it to keep everything.",
                heard.uuid
            )));
        }
    }
    Ok(())
}
