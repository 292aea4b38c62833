//! `--rewind-files`: puts the files of a session back to where they were at one of its prompts, without a turn.

use tokio_util::sync::CancellationToken;
use whimbrel_transport::link::{HostEnd, pair};
use whimbrel_wire::Frame;
use whimbrel_wire::control::{ControlRequest, Request, Response, RewindFiles, RewindFilesReply};

use crate::serve_session::PreparedSession;

/// Id of the only request.
const REQUEST_ID: &str = "rewind";

/// Rewinds the files of the resumed session to a prompt, and returns a page about it. The error is a text for stderr.
pub(crate) fn rewind_files(mut session: PreparedSession, prompt: String) -> Result<String, String> {
    session.request.options.enable_file_checkpointing = true;
    let (link, host) = pair();
    let served = session.serve(link, |ended| request_rewind(host, prompt, ended));
    let (session_exit, response) = served.map_err(|error| format!("Cannot start: {error}."))?;
    match (session_exit.setup_error, response) {
        (Some(error), _) => Err(error.to_string()),
        (None, Some(Response::Success { response, .. })) => {
            let reply = response.and_then(|json| json.decode().ok());
            render_reply(&reply.unwrap_or_default())
        }
        (None, Some(Response::Error { error, .. })) => Err(format!("--rewind-files: {error}")),
        (None, None) => Err("--rewind-files: the session ended before the files were rewound.".into()),
    }
}

/// Sends the request, and waits for the response and the end of the session.
async fn request_rewind(host: HostEnd, prompt: String, ended: CancellationToken) -> Option<Response> {
    let HostEnd { sender, mut receiver, finished, .. } = host;
    let request = Request::RewindFiles(RewindFiles { user_message_id: prompt, dry_run: None });
    let request = ControlRequest { request_id: REQUEST_ID.into(), request };
    // An engine that has rejected the session no longer receives.
    let _ = sender.send(Ok(request.into())).await;
    finished.cancel();
    let mut response = None;
    loop {
        let frame = tokio::select! {
            biased;
            frame = receiver.recv() => frame,
            () = ended.cancelled() => None,
        };
        match frame {
            Some(Frame::ControlResponse(answer)) => response = Some(answer.response),
            Some(_) => {}
            None => return response,
        }
    }
}

fn render_reply(reply: &RewindFilesReply) -> Result<String, String> {
    let files = reply.files_changed.as_deref().unwrap_or_default();
    let mut page = match files.len() {
        0 => "No file has changed since this prompt.\n".to_owned(),
        1 => "1 file is as it was at this prompt:\n".to_owned(),
        number => format!("{number} files are as they were at this prompt:\n"),
    };
    page.extend(files.iter().map(|file| format!("  {file}\n")));
    match &reply.error {
        Some(error) => Err(format!("{page}{error}")),
        None => Ok(page),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restored_files_are_listed() {
        let reply = |files: &[&str], error: Option<&str>| RewindFilesReply {
            files_changed: Some(files.iter().map(|file| (*file).to_owned()).collect()),
            error: error.map(str::to_owned),
            ..RewindFilesReply::default()
        };
        assert_eq!(render_reply(&reply(&[], None)).unwrap(), "No file has changed since this prompt.\n");
        let two = render_reply(&reply(&["/a", "/b"], None)).unwrap();
        assert_eq!(two, "2 files are as they were at this prompt:\n  /a\n  /b\n");
        let error = render_reply(&reply(&["/a"], Some("/b is locked."))).unwrap_err();
        assert_eq!(error, "1 file is as it was at this prompt:\n  /a\n/b is locked.");
    }
}
