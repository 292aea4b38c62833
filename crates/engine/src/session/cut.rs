//! Up to where a conversation is read back, and whether what is dropped by that is what the host means to drop.

use std::io::{Read, Seek};

use super::index::{Index, Place};
use super::load::{LoadError, Until};
use super::path;
use super::reader::{Part, Reader};

/// The last line that counts.
pub(super) fn leaf<R: Read + Seek>(
    index: &Index,
    reader: &mut Reader<R>,
    until: &Until,
) -> Result<Option<Place>, LoadError> {
    let last = path::end(index);
    let find = |uuid: &String| index.find(uuid).ok_or_else(|| LoadError::NoSuchMessage(uuid.clone()));
    let (at, drops) = (until.at.as_ref().map(find).transpose()?, until.drops.as_ref());
    let Some(drops) = drops else { return Ok(at.or(last)) };
    let prompt = find(drops)?;
    let at = at.or_else(|| path::said_before(index, prompt));
    let path = path::path(index, last);
    let kept = match at {
        None => 0,
        Some(at) => path.iter().position(|place| *place == at).map(|place| place + 1).ok_or_else(|| {
            LoadError::Rejected("the message to go back to is not in the conversation as it stands.".into())
        })?,
    };
    check(index, reader, &path[kept..], prompt)?;
    Ok(at)
}

/// Whether all these lines are of the turn that began with a prompt.
fn check<R: Read + Seek>(
    index: &Index,
    reader: &mut Reader<R>,
    dropped: &[Place],
    prompt: Place,
) -> Result<(), LoadError> {
    let mut begun = false;
    for place in dropped {
        begun |= *place == prompt;
        let Some(heard) = reader.hear(index.node(*place))? else { continue };
        let foreign = match heard.role {
            Part::Prompt => *place != prompt,
            Part::Result | Part::Reply => !begun,
            Part::Remark => false,
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
