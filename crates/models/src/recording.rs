//! Recordings: what models said in a session is kept in a file, and a session can be run again on it without a model.
//!
//! A recording is a line of JSON per attempt at a reply: an outline of what was asked, the events that came, and the fault if
//! there was one. When it is played, each request gets the first reply that was given to the same request and has not been
//! played yet, so that subagents may ask in any order. A request that nobody made before is where the session has left the
//! recording: it gets a fault that says at which step, and in what.
//!
//! Ids that are drawn at random (of agents, tasks, sessions) differ from run to run, and so do moments. Requests are
//! compared without them, and where a recorded reply names an id, it is played with the one that this run has drawn in its
//! place.

mod ids;
mod timestamps;
mod replay;
mod recorder;
mod substitute;
mod step;

use std::path::Path;
use std::sync::Arc;

use futures::StreamExt;
use futures::stream::{self, BoxStream};

use crate::error::{ModelError, ModelErrorKind};
use crate::model::{ReplyItem, Model};
use crate::request::Request;

use replay::ReplayModel;
use recorder::{RecordingModel, RecordingWriter};

/// A recording that is being made or played.
#[derive(Clone)]
pub struct Recording(Mode);

#[derive(Clone)]
enum Mode {
    Record(Arc<RecordingWriter>),
    Replay(Arc<ReplayModel>),
    /// It could not be opened: whoever is asked says why.
    Failed(ModelError),
}

impl Recording {
    /// Records into a new file.
    pub fn record_to(path: &Path) -> Self {
        Self(match RecordingWriter::create(path) {
            Ok(recording) => Mode::Record(Arc::new(recording)),
            Err(why) => Mode::Failed(recording_error("cannot be made", path, &why)),
        })
    }

    /// Plays what is in a file.
    pub fn replay_from(path: &Path) -> Self {
        Self(match ReplayModel::load(path) {
            Ok(player) => Mode::Replay(Arc::new(player)),
            Err(why) => Mode::Failed(recording_error("cannot be played", path, &why)),
        })
    }

    /// What a recording that is played holds and nobody has asked for, in words.
    pub fn describe_unplayed(&self) -> Option<String> {
        match &self.0 {
            Mode::Replay(player) => player.describe_unplayed(),
            Mode::Record(_) | Mode::Failed(_) => None,
        }
    }

    /// Who answers in place of a model: the model itself and its recorder, or the recording.
    pub(crate) fn wrap_model(
        &self,
        name: &str,
        found: Result<(Arc<dyn Model>, String), ModelError>,
    ) -> Result<(Arc<dyn Model>, String), ModelError> {
        match &self.0 {
            Mode::Failed(fault) => Err(fault.clone()),
            Mode::Record(recording) => {
                found.map(|(model, name)| (RecordingModel::new(model, Arc::clone(recording)) as _, name))
            }
            Mode::Replay(player) => {
                Ok((Arc::clone(player) as _, found.map_or_else(|_| name.to_owned(), |(_, name)| name)))
            }
        }
    }
}

fn recording_error(what: &str, path: &Path, why: &str) -> ModelError {
    ModelError::new(ModelErrorKind::Script, format!("The recording {} {what}: {why}", path.display()))
}

impl Model for ReplayModel {
    fn stream_reply(&self, request: Arc<Request>) -> BoxStream<'static, Result<ReplyItem, ModelError>> {
        stream::iter(self.reply_items(&request)).boxed()
    }
}

#[cfg(test)]
mod tests;
