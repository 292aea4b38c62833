//! `--debug`: a log with timestamps, on stderr or in a file.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::{Mutex, PoisonError};

use whimbrel_os::clock;
use whimbrel_os::log::{Log, LogTopic};
use whimbrel_wire::options::Options;

use crate::stdio;

/// Topics that are logged.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TopicFilter(Vec<LogTopic>);

impl TopicFilter {
    /// Parses comma-separated names; a leading `!` excludes a topic. Also returns the unknown names.
    fn parse(text: &str) -> (Self, Vec<String>) {
        let (mut wanted, mut unwanted, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
        for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            let (bare, list) = match name.strip_prefix('!') {
                Some(bare) => (bare, &mut unwanted),
                None => (name, &mut wanted),
            };
            match parse_topic(bare) {
                Some(topic) => list.push(topic),
                None => unknown.push(bare.to_owned()),
            }
        }
        let all = wanted.is_empty();
        let included = LogTopic::ALL.into_iter().filter(|topic| all || wanted.contains(topic));
        (Self(included.filter(|topic| !unwanted.contains(topic)).collect()), unknown)
    }

    fn includes(&self, topic: LogTopic) -> bool {
        self.0.contains(&topic)
    }
}

/// Finds a topic by its singular or plural name.
pub(crate) fn parse_topic(name: &str) -> Option<LogTopic> {
    let name = name.to_ascii_lowercase();
    let singular = |name: &str| name.trim_end_matches('s').to_owned();
    LogTopic::ALL.into_iter().find(|topic| singular(topic.name()) == singular(&name))
}

/// Opens the log that the options ask for, with a warning about unknown topics; without `--debug` the log discards
/// everything. Fails if the log file cannot be opened.
pub(crate) fn open_log(options: &Options, filter: Option<&str>) -> Result<(Log, Option<String>), String> {
    if !options.debug && options.debug_file.is_none() {
        return Ok((Log::default(), None));
    }
    let (filter, unknown) = TopicFilter::parse(filter.unwrap_or_default());
    let warning = (!unknown.is_empty()).then(|| {
        let known = LogTopic::ALL.map(LogTopic::name).join(", ");
        format!("--debug: {} is not a topic and was ignored; the topics are {known}.", unknown.join(", "))
    });
    let log = match &options.debug_file {
        None => Log::with_listener(move |topic, text| {
            if filter.includes(topic) {
                stdio::print_line(&format_line(topic, text));
            }
        }),
        Some(path) => {
            let file = Mutex::new(open_log_file(path)?);
            Log::with_listener(move |topic, text| {
                if filter.includes(topic) {
                    let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
                    // A full disk must not stop the session that is logged.
                    let _ = file.write_all(format!("{}\n", format_line(topic, text)).as_bytes());
                }
            })
        }
    };
    Ok((log, warning))
}

/// Opens the file for appending, readable by its owner only.
fn open_log_file(path: &str) -> Result<File, String> {
    let opened = OpenOptions::new().create(true).append(true).mode(0o600).open(path);
    opened.map_err(|error| format!("--debug-file: {path} cannot be written: {error}."))
}

fn format_line(topic: LogTopic, text: &str) -> String {
    format!("{} [{}] {}", clock::timestamp(), topic.name(), text.replace(['\n', '\r'], " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filter_includes_and_excludes_topics() {
        use LogTopic::{Api, Control, Frames, Hooks, Tools};
        let rows: [(&str, &[LogTopic], &[&str]); 6] = [
            ("", &LogTopic::ALL, &[]),
            ("api,hooks", &[Api, Hooks], &[]),
            ("API, tool", &[Api, Tools], &[]),
            ("!frames", &[Api, Tools, Hooks, Control], &[]),
            ("api,frames,!frames", &[Api], &[]),
            ("statsig,frames", &[Frames], &["statsig"]),
        ];
        for (text, included, unknown) in rows {
            let (filter, left_out) = TopicFilter::parse(text);
            assert_eq!(
                (filter.0.as_slice(), left_out),
                (included, unknown.iter().map(|name| (*name).to_owned()).collect()),
                "{text:?}"
            );
        }
    }

    #[test]
    fn unwritable_log_file_is_named() {
        let options = Options { debug_file: Some("/nowhere/at/all".into()), ..Options::default() };
        let error = open_log(&options, None).unwrap_err();
        assert!(error.contains("/nowhere/at/all cannot be written"), "{error}");
    }
}
