//! Runs sessions one after another in the same directories.

use serde_json::Value;
use whimbrel_testkit::{HostBuilder, Reply, SessionDirs};
use whimbrel_wire::options::Options;

/// A host in these directories with these replies.
pub(crate) fn host_with_replies(
    dirs: &SessionDirs,
    replies: impl IntoIterator<Item = &'static str>,
    options: Options,
) -> HostBuilder {
    dirs.host(replies.into_iter().map(Reply::text).collect::<Vec<Reply>>(), options)
}

/// Runs prompts in a session; returns the session id and the body of the last model request.
pub(crate) async fn run_prompts(dirs: &SessionDirs, options: Options, prompts: &[&str]) -> (String, Value) {
    let mut host = host_with_replies(dirs, ["1", "2", "3", "4"], options).start().await.unwrap();
    let mut session = String::new();
    for prompt in prompts {
        session = host.run(*prompt).await.unwrap().session_id;
    }
    let request = host.model_requests().last().unwrap().body.clone();
    host.finish().await.unwrap();
    (session, request)
}

/// The error of a session that cannot start.
pub(crate) async fn start_error(dirs: &SessionDirs, options: Options) -> String {
    let mut host = host_with_replies(dirs, ["1"], options).start().await.unwrap();
    let result = host.next_result().await.unwrap();
    assert!(result.is_error && result.num_turns == 0);
    assert_eq!(host.finish().await.unwrap().code, 1);
    result.errors.unwrap().join("\n")
}

/// Options that resume a session.
pub(crate) fn resume_options(session: &str) -> Options {
    Options { resume: Some(session.into()), ..Options::default() }
}

/// Role and text of each message, without injected context and cache marks.
pub(crate) fn message_texts(request: &Value) -> Vec<(String, String)> {
    let messages = request["messages"].as_array().unwrap().iter();
    let texts = |message: &Value| {
        let blocks = message["content"].as_array().unwrap().iter().filter_map(|block| block["text"].as_str());
        blocks.filter(|text| !text.starts_with('<')).collect::<Vec<_>>().join("+")
    };
    messages.map(|message| (message["role"].as_str().unwrap().to_owned(), texts(message))).collect()
}

pub(crate) fn joined_texts(request: &Value) -> String {
    message_texts(request).into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(" ")
}
