//! Writing of a recording.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use whimbrel_wire::RawJson;

use super::recording_error;
use super::step::{RecordedError, RecordedStep, outline_request};
use crate::error::ModelError;
use crate::model::{Model, ReplyItem};
use crate::request::{OptionalPart, Request};

/// Appends steps to the file of a recording.
pub(super) struct RecordingWriter {
    path: PathBuf,
    state: Mutex<WriterState>,
}

struct WriterState {
    file: File,
    step_count: usize,
    /// Digests of the messages whose text is already in the file.
    written_digests: HashSet<String>,
    /// First write error; the recording is incomplete after it.
    error: Option<String>,
}

/// A model whose replies are recorded.
pub(super) struct RecordingModel {
    model: Arc<dyn Model>,
    recording: Arc<RecordingWriter>,
}

/// A step in progress. Written to the file on drop, complete or not.
struct StepGuard {
    recording: Arc<RecordingWriter>,
    step: Option<RecordedStep>,
    is_complete: bool,
}

impl RecordingWriter {
    /// Creates the file, readable by its owner only. Fails if it exists.
    pub(super) fn create(path: &Path) -> Result<Self, String> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path).map_err(|error| format!("{error}."))?;
        Ok(Self {
            path: path.to_owned(),
            state: Mutex::new(WriterState {
                file,
                step_count: 0,
                written_digests: HashSet::new(),
                error: None,
            }),
        })
    }

    fn write_step(&self, mut step: RecordedStep) {
        let mut state = self.state();
        state.step_count += 1;
        step.step = state.step_count;
        for outline in &mut step.messages {
            if !state.written_digests.insert(outline.digest.clone()) {
                outline.text = None;
            }
        }
        let line = serde_json::to_string(&step).map(|line| line + "\n").map_err(|error| error.to_string());
        let written =
            line.and_then(|line| state.file.write_all(line.as_bytes()).map_err(|error| error.to_string()));
        if let Err(error) = written {
            state.error.get_or_insert(format!("{error}."));
        }
    }

    /// Returns the write error, if any: a recording with a gap is useless, so no further request is made.
    fn write_error(&self) -> Option<ModelError> {
        self.state().error.as_ref().map(|error| recording_error("cannot be written", &self.path, error))
    }

    fn state(&self) -> MutexGuard<'_, WriterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RecordingModel {
    pub(super) fn new(model: Arc<dyn Model>, recording: Arc<RecordingWriter>) -> Arc<Self> {
        Arc::new(Self { model, recording })
    }
}

impl Model for RecordingModel {
    fn stream_reply(&self, request: Arc<Request>) -> BoxStream<'static, Result<ReplyItem, ModelError>> {
        if let Some(error) = self.recording.write_error() {
            return stream::once(std::future::ready(Err(error))).boxed();
        }
        let step = RecordedStep {
            step: 0,
            model: request.model.clone(),
            messages: outline_request(&request),
            events: Vec::new(),
            error: None,
        };
        let mut guard =
            StepGuard { recording: Arc::clone(&self.recording), step: Some(step), is_complete: false };
        let items = self.model.stream_reply(request).map(move |item| {
            guard.record_item(&item);
            item
        });
        items.boxed()
    }

    fn mark_unsupported(&self, model: &str, part: &OptionalPart) {
        self.model.mark_unsupported(model, part);
    }
}

impl StepGuard {
    fn record_item(&mut self, item: &Result<ReplyItem, ModelError>) {
        let Some(step) = &mut self.step else { return };
        match item {
            Ok(item) => {
                let event: Option<RawJson> = item.raw.clone().or_else(|| item.event.to_raw_json());
                step.events.extend(event);
                self.is_complete |= item.event == crate::event::ReplyEvent::MessageStop;
            }
            Err(error) => {
                step.error = Some(RecordedError::from_error(error));
                self.is_complete = true;
            }
        }
    }
}

impl Drop for StepGuard {
    fn drop(&mut self) {
        let Some(mut step) = self.step.take() else { return };
        if !self.is_complete {
            step.error = Some(RecordedError::abandoned());
        }
        self.recording.write_step(step);
    }
}
