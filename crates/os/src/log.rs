//! Debug log: one line per action, passed to an optional listener. Without a listener no line is formatted.
//! Lines never contain keys or the content of a conversation.

use std::fmt;
use std::sync::Arc;

/// Subject of a log line, used for filtering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogTopic {
    /// Requests to models.
    Api,
    /// Tool calls.
    Tools,
    /// Hooks.
    Hooks,
    /// Control requests and responses between host and engine.
    Control,
    /// All other frames.
    Frames,
}

impl LogTopic {
    pub const ALL: [Self; 5] = [Self::Api, Self::Tools, Self::Hooks, Self::Control, Self::Frames];

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

/// Handle to the log listener. Cheap to clone; the default has no listener.
#[derive(Clone, Default)]
pub struct Log(Option<Arc<Listener>>);

type Listener = dyn Fn(LogTopic, &str) + Send + Sync;

impl Log {
    /// Passes every line to a listener, which must not block.
    pub fn with_listener(listener: impl Fn(LogTopic, &str) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(listener)))
    }

    pub fn is_enabled(&self) -> bool {
        self.0.is_some()
    }

    /// Writes a line. The closure runs only if there is a listener.
    pub fn write_line(&self, topic: LogTopic, line: impl FnOnce() -> String) {
        if let Some(listener) = &self.0 {
            listener(topic, &line());
        }
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Log(enabled)" } else { "Log(disabled)" })
    }
}
