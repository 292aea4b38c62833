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

mod drawn;
mod moments;
mod player;
mod recorder;
mod retell;
mod step;

use std::path::Path;
use std::sync::Arc;

use futures::StreamExt;
use futures::stream::{self, BoxStream};

use crate::fault::{Fault, FaultKind};
use crate::model::{Delta, Model};
use crate::request::Request;

use player::Player;
use recorder::{Recorder, Recording};

/// A recording that is being made or played.
#[derive(Clone)]
pub struct Tape(Kind);

#[derive(Clone)]
enum Kind {
    Record(Arc<Recording>),
    Play(Arc<Player>),
    /// It could not be opened: whoever is asked says why.
    Broken(Fault),
}

impl Tape {
    /// Records into a new file.
    pub fn record(path: &Path) -> Self {
        Self(match Recording::begin(path) {
            Ok(recording) => Kind::Record(Arc::new(recording)),
            Err(why) => Kind::Broken(broken("cannot be made", path, &why)),
        })
    }

    /// Plays what is in a file.
    pub fn play(path: &Path) -> Self {
        Self(match Player::load(path) {
            Ok(player) => Kind::Play(Arc::new(player)),
            Err(why) => Kind::Broken(broken("cannot be played", path, &why)),
        })
    }

    /// What a recording that is played holds and nobody has asked for, in words.
    pub fn unplayed(&self) -> Option<String> {
        match &self.0 {
            Kind::Play(player) => player.unplayed(),
            Kind::Record(_) | Kind::Broken(_) => None,
        }
    }

    /// Who answers in place of a model: the model itself and its recorder, or the recording.
    pub(crate) fn put_before(
        &self,
        name: &str,
        found: Result<(Arc<dyn Model>, String), Fault>,
    ) -> Result<(Arc<dyn Model>, String), Fault> {
        match &self.0 {
            Kind::Broken(fault) => Err(fault.clone()),
            Kind::Record(recording) => {
                found.map(|(model, name)| (Recorder::of(model, Arc::clone(recording)) as _, name))
            }
            Kind::Play(player) => {
                Ok((Arc::clone(player) as _, found.map_or_else(|_| name.to_owned(), |(_, name)| name)))
            }
        }
    }
}

fn broken(what: &str, path: &Path, why: &str) -> Fault {
    Fault::new(FaultKind::Script, format!("The recording {} {what}: {why}", path.display()))
}

impl Model for Player {
    fn ask(&self, request: Arc<Request>) -> BoxStream<'static, Result<Delta, Fault>> {
        stream::iter(self.answer(&request)).boxed()
    }
}

#[cfg(test)]
mod tests;
