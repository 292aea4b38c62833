//! What is done, told line by line to whoever wants to follow it. Where nobody listens nothing is put together.
//! Lines name what happens and how it went: never a key, and never what is said in a conversation.

use std::fmt;
use std::sync::Arc;

/// What a line is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogTopic {
    /// Requests to models.
    Api,
    /// Tool calls.
    Tools,
    /// Hooks.
    Hooks,
    /// Questions between host and engine.
    Control,
    /// All other frames.
    Frames,
}

impl LogTopic {
    /// Every topic.
    pub const ALL: [Self; 5] = [Self::Api, Self::Tools, Self::Hooks, Self::Control, Self::Frames];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Tools => "tools",
            Self::Hooks => "hooks",
            Self::Control => "control",
            Self::Frames => "frames",
        }
    }
}

/// The way to whoever listens. Cheap to clone; by default nobody does.
#[derive(Clone, Default)]
pub struct Log(Option<Arc<Listener>>);

type Listener = dyn Fn(LogTopic, &str) + Send + Sync;

impl Log {
    /// Tells everything to a listener, which must not block.
    pub fn with_listener(listener: impl Fn(LogTopic, &str) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(listener)))
    }

    /// Whether somebody listens.
    pub fn is_enabled(&self) -> bool {
        self.0.is_some()
    }

    /// Tells a line, which is put together only if somebody listens.
    pub fn write_line(&self, topic: LogTopic, line: impl FnOnce() -> String) {
        if let Some(listener) = &self.0 {
            listener(topic, &line());
        }
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Log(heard)" } else { "Log(unheard)" })
    }
}
