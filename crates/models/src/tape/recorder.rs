//! Making a recording.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use whimbrel_wire::RawJson;

use super::broken;
use super::step::{Failure, Step, outline};
use crate::correct::Part;
use crate::fault::Fault;
use crate::model::{Delta, Model};
use crate::request::Request;

/// A recording that grows.
pub(super) struct Recording {
    path: PathBuf,
    state: Mutex<State>,
}

struct State {
    file: File,
    steps: usize,
    /// The messages whose text stands in it.
    told: HashSet<String>,
    /// Why it is not whole any more.
    failed: Option<String>,
}

/// A model whose replies are recorded.
pub(super) struct Recorder {
    model: Arc<dyn Model>,
    recording: Arc<Recording>,
}

/// A step that is under way; written down when it is dropped, however far it has come.
struct Writing {
    recording: Arc<Recording>,
    step: Option<Step>,
    whole: bool,
}

impl Recording {
    /// Begins a recording in a file that is not there yet, and that nobody else can read.
    pub(super) fn begin(path: &Path) -> Result<Self, String> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path).map_err(|error| format!("{error}."))?;
        Ok(Self {
            path: path.to_owned(),
            state: Mutex::new(State { file, steps: 0, told: HashSet::new(), failed: None }),
        })
    }

    fn write(&self, mut step: Step) {
        let mut state = self.state();
        state.steps += 1;
        step.step = state.steps;
        for outline in &mut step.asked {
            if !state.told.insert(outline.digest.clone()) {
                outline.text = None;
            }
        }
        let line = serde_json::to_string(&step).map(|line| line + "\n").map_err(|error| error.to_string());
        let written =
            line.and_then(|line| state.file.write_all(line.as_bytes()).map_err(|error| error.to_string()));
        if let Err(error) = written {
            state.failed.get_or_insert(format!("{error}."));
        }
    }

    /// Why the recording cannot go on, if it cannot. A recording with a hole in it would be worth nothing.
    fn failure(&self) -> Option<Fault> {
        self.state().failed.as_ref().map(|why| broken("cannot be written", &self.path, why))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Recorder {
    pub(super) fn of(model: Arc<dyn Model>, recording: Arc<Recording>) -> Arc<Self> {
        Arc::new(Self { model, recording })
    }
}

impl Model for Recorder {
    fn ask(&self, request: Arc<Request>) -> BoxStream<'static, Result<Delta, Fault>> {
        if let Some(fault) = self.recording.failure() {
            return stream::once(std::future::ready(Err(fault))).boxed();
        }
        let step = Step {
            step: 0,
            model: request.model.clone(),
            asked: outline(&request),
            events: Vec::new(),
            fault: None,
        };
        let mut writing = Writing { recording: Arc::clone(&self.recording), step: Some(step), whole: false };
        let heard = self.model.ask(request).map(move |item| {
            writing.note(&item);
            item
        });
        heard.boxed()
    }

    fn forgo(&self, model: &str, part: &Part) {
        self.model.forgo(model, part);
    }
}

impl Writing {
    fn note(&mut self, item: &Result<Delta, Fault>) {
        let Some(step) = &mut self.step else { return };
        match item {
            Ok(delta) => {
                let event: Option<RawJson> = delta.raw.clone().or_else(|| delta.event.raw());
                step.events.extend(event);
                self.whole |= delta.event == crate::event::Event::MessageStop;
            }
            Err(fault) => {
                step.fault = Some(Failure::of(fault));
                self.whole = true;
            }
        }
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        let Some(mut step) = self.step.take() else { return };
        if !self.whole {
            step.fault = Some(Failure::left());
        }
        self.recording.write(step);
    }
}
