//! Recordings: the replies of a session are written to a file, and a session can be replayed from it without a model.
//!
//! A recording has one JSON line per attempt at a reply: an outline of the request, the events, and the error if there
//! was one. On replay each request gets the first unused reply to the same request, so that subagents may send requests
//! in any order. A request that is not in the recording is a divergence: it fails with the step and the difference.
//!
//! Random ids (of agents, tasks, sessions) and timestamps differ from run to run. Requests are compared without them,
//! and ids in a recorded reply are replaced by the corresponding ids of the current run.

mod normalize;
mod recorder;
mod replay;
mod step;

use std::path::Path;
use std::sync::Arc;

use futures::StreamExt;
use futures::stream::{self, BoxStream};

use crate::error::{ModelError, ModelErrorKind};
use crate::model::{Model, ReplyItem};
use crate::request::Request;

use recorder::{RecordingModel, RecordingWriter};
use replay::ReplayModel;

/// A recording being written or replayed.
#[derive(Clone)]
pub struct Recording(Mode);

#[derive(Clone)]
enum Mode {
    Record(Arc<RecordingWriter>),
    Replay(Arc<ReplayModel>),
    /// The file could not be opened; every request returns this error.
    Failed(ModelError),
}

impl Recording {
    /// Records to a new file.
    pub fn record_to(path: &Path) -> Self {
        Self(match RecordingWriter::create(path) {
            Ok(writer) => Mode::Record(Arc::new(writer)),
            Err(cause) => Mode::Failed(recording_error("cannot be created", path, &cause)),
        })
    }

    /// Replays a file.
    pub fn replay_from(path: &Path) -> Self {
        Self(match ReplayModel::load(path) {
            Ok(replay) => Mode::Replay(Arc::new(replay)),
            Err(cause) => Mode::Failed(recording_error("cannot be replayed", path, &cause)),
        })
    }

    /// Describes the steps of a replayed recording that were never requested.
    pub fn describe_unplayed(&self) -> Option<String> {
        match &self.0 {
            Mode::Replay(replay) => replay.describe_unplayed(),
            Mode::Record(_) | Mode::Failed(_) => None,
        }
    }

    /// Wraps a model with a recorder, or replaces it by the replay.
    pub(crate) fn wrap_model(
        &self,
        name: &str,
        resolved: Result<(Arc<dyn Model>, String), ModelError>,
    ) -> Result<(Arc<dyn Model>, String), ModelError> {
        match &self.0 {
            Mode::Failed(error) => Err(error.clone()),
            Mode::Record(writer) => {
                resolved.map(|(model, name)| (RecordingModel::new(model, Arc::clone(writer)) as _, name))
            }
            Mode::Replay(replay) => {
                Ok((Arc::clone(replay) as _, resolved.map_or_else(|_| name.to_owned(), |(_, name)| name)))
            }
        }
    }
}

fn recording_error(problem: &str, path: &Path, cause: &str) -> ModelError {
    ModelError::new(ModelErrorKind::Script, format!("The recording {} {problem}: {cause}", path.display()))
}

impl Model for ReplayModel {
    fn stream_reply(&self, request: Arc<Request>) -> BoxStream<'static, Result<ReplyItem, ModelError>> {
        stream::iter(self.reply_items(&request)).boxed()
    }
}

#[cfg(test)]
mod tests;
