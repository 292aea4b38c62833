//! Whether prompts, answers and tool calls are recorded. They may be confidential, so by default they are not.

/// Variable that asks for contents; the name is that of the OpenTelemetry instrumentations.
const CONTENT_VARIABLE: &str = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT";

/// Whether contents are recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ContentCapture {
    #[default]
    Off,
    On,
}

impl ContentCapture {
    /// Reads the variable from an environment.
    pub fn from_env(get: impl Fn(&str) -> Option<String>) -> Self {
        match get(CONTENT_VARIABLE).as_deref() {
            Some("1" | "true" | "TRUE" | "span_only" | "span_and_event") => Self::On,
            _ => Self::Off,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_recorded_only_if_asked_for() {
        let rows = [
            (None, ContentCapture::Off),
            (Some("false"), ContentCapture::Off),
            (Some("true"), ContentCapture::On),
        ];
        for (value, expected) in rows {
            assert_eq!(ContentCapture::from_env(|_| value.map(str::to_owned)), expected, "{value:?}");
        }
    }
}
