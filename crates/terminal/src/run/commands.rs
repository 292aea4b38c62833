//! Programs that the terminal starts for its user: the editor, git, the clipboard.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::Command;
use whimbrel::Environment;

use super::edge::ReplySender;
use super::files::to_picture;
use crate::app::event::Reply;

/// Lets the user edit a text in `$VISUAL` or `$EDITOR`.
pub(super) async fn edit_externally(
    text: &str,
    environment: &Environment,
    cwd: &Path,
) -> Result<String, String> {
    let editor = ["VISUAL", "EDITOR"]
        .iter()
        .find_map(|name| environment.get(name).filter(|editor| !editor.trim().is_empty()))
        .unwrap_or("vi");
    let mut file = tempfile::Builder::new()
        .prefix("whimbrel-")
        .suffix(".md")
        .tempfile()
        .map_err(|error| format!("cannot make a temporary file: {error}"))?;
    file.write_all(text.as_bytes())
        .map_err(|error| format!("cannot write {}: {error}", file.path().display()))?;
    let status = run_editor(editor, file.path(), environment, cwd)
        .await
        .map_err(|error| format!("the editor {editor:?} could not be started: {error}"))?;
    if !status.success() {
        return Err(format!("the editor ended with {status}; the message is unchanged"));
    }
    let edited = std::fs::read_to_string(file.path())
        .map_err(|error| format!("cannot read {}: {error}", file.path().display()))?;
    // Editors end a file with a newline.
    Ok(edited.strip_suffix('\n').unwrap_or(&edited).to_owned())
}

/// The editor may have arguments, so the shell reads it.
#[expect(clippy::disallowed_methods, reason = "the user's own editor is not a tool call")]
async fn run_editor(
    editor: &str,
    file: &Path,
    environment: &Environment,
    cwd: &Path,
) -> std::io::Result<std::process::ExitStatus> {
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(format!("{editor} \"$1\"")).arg("sh").arg(file).current_dir(cwd);
    command.env_clear().envs(environment.iter()).status().await
}

/// Reads a picture from the clipboard.
pub(super) fn read_clipboard(environment: &Environment, replies: ReplySender) {
    let is_remote = environment.get("SSH_CONNECTION").is_some();
    let environment = environment.clone();
    tokio::spawn(async move {
        let picture = if is_remote {
            Err("the clipboard of your machine cannot be read through SSH; paste the path of a file instead"
                .into())
        } else {
            clipboard_picture(&environment).await
        };
        let _ = replies.send(Reply::Picture(picture));
    });
}

/// Programs that print the picture of the clipboard.
const CLIPBOARD_READERS: [&[&str]; 3] = [
    &["wl-paste", "--type", "image/png"],
    &["xclip", "-selection", "clipboard", "-t", "image/png", "-o"],
    &["pngpaste", "-"],
];

async fn clipboard_picture(environment: &Environment) -> Result<crate::editor::Picture, String> {
    let mut has_reader = false;
    for words in CLIPBOARD_READERS {
        let Ok(output) = run_quietly(words, environment, None).await else { continue };
        has_reader = true;
        if let Some(picture) = to_picture(&output) {
            return Ok(picture);
        }
    }
    Err(match has_reader {
        true => "there is no picture in the clipboard".into(),
        false => {
            "the clipboard cannot be read: install wl-paste, xclip or pngpaste, or paste the path of a file"
                .into()
        }
    })
}

/// The changes, without any program that a repository's configuration or a submodule's names: a confined command may
/// have written it.
const DIFF: [&str; 12] = [
    "git",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
    "--no-pager",
    "diff",
    "--no-ext-diff",
    "--no-textconv",
    "--ignore-submodules=dirty",
    "--no-color",
    "HEAD",
];

/// Shows the uncommitted changes of the project.
pub(super) fn show_diff(cwd: PathBuf, environment: &Environment, replies: ReplySender) {
    let environment = environment.clone();
    tokio::spawn(async move {
        let reply = match run_quietly(&DIFF, &environment, Some(&cwd)).await {
            Ok(diff) if diff.is_empty() => Reply::Done("there are no uncommitted changes".into()),
            Ok(diff) => {
                let text = String::from_utf8_lossy(&diff);
                Reply::Page(format!("`````diff\n{}\n`````", text.trim_end()))
            }
            Err(error) => Reply::Failed(format!("git diff failed: {error}")),
        };
        let _ = replies.send(reply);
    });
}

/// Runs a program and returns what it printed.
#[expect(clippy::disallowed_methods, reason = "a program of the user, not a tool call")]
async fn run_quietly(
    words: &[&str],
    environment: &Environment,
    cwd: Option<&Path>,
) -> std::io::Result<Vec<u8>> {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).stdin(Stdio::null()).kill_on_drop(true);
    command.env_clear().envs(environment.iter());
    if let Some(cwd) = cwd {
        command.current_dir(cwd);
    }
    let output = command.output().await?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let error = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(std::io::Error::other(if error.is_empty() { output.status.to_string() } else { error }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn diff_runs_no_program_of_the_repository() {
        let folder = tempfile::tempdir().unwrap();
        let (base, ran) = (folder.path(), folder.path().join("ran"));
        let environment = Environment::of_process();
        let run = async |words: &[&str], cwd: &str| {
            let words = [&["git", "-c", "user.name=t", "-c", "user.email=t@t"], words].concat();
            run_quietly(&words, &environment, Some(&base.join(cwd))).await.unwrap()
        };
        std::fs::create_dir_all(base.join("work/sub")).unwrap();
        for folder in ["work/sub", "work"] {
            run(&["init", "-q"], folder).await;
            std::fs::write(base.join(folder).join("a.txt"), "a\n").unwrap();
            std::fs::write(base.join(folder).join(".gitattributes"), "*.txt diff=evil\n").unwrap();
            run(&["-c", "advice.addEmbeddedRepo=false", "add", "-A"], folder).await;
            run(&["commit", "-qm", "x"], folder).await;
            std::fs::write(base.join(folder).join("a.txt"), "b\n").unwrap();
        }
        let program = format!("touch {}", ran.display());
        for folder in ["work/sub", "work"] {
            for key in ["core.fsmonitor", "diff.external", "diff.evil.textconv", "core.pager"] {
                run(&["config", key, &program], folder).await;
            }
        }
        let diff = run_quietly(&DIFF, &environment, Some(&base.join("work"))).await.unwrap();
        assert!(String::from_utf8_lossy(&diff).contains("-a\n+b\n"));
        assert!(!ran.exists());
    }
}
