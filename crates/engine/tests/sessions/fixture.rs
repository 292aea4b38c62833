//! Directories for consecutive sessions.

use std::path::PathBuf;

use serde_json::Value;
use tempfile::TempDir;
use whimbrel_testkit::{Host, HostBuilder, Reply, Script};
use whimbrel_wire::options::Options;

/// Directories that outlive a host.
pub(crate) struct SessionDirs {
    pub(crate) root: TempDir,
}

impl SessionDirs {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("work")).unwrap();
        Self { root }
    }

    /// A host in these directories with these replies.
    pub(crate) fn host_with_replies(
        &self,
        replies: impl IntoIterator<Item = &'static str>,
        options: Options,
    ) -> HostBuilder {
        self.host_with_script(replies.into_iter().map(Reply::text).collect::<Vec<Reply>>(), options)
    }

    /// A host in these directories with a script.
    pub(crate) fn host_with_script(&self, script: impl Into<Script>, options: Options) -> HostBuilder {
        let work = self.root.path().join("work").canonicalize().unwrap();
        let options = Options { cwd: Some(work.to_string_lossy().into_owned()), ..options };
        let config = self.root.path().join("config");
        Host::with_script(script).options(options).env("CLAUDE_CONFIG_DIR", config.to_string_lossy())
    }

    /// Runs prompts in a session; returns the session id and the body of the last model request.
    pub(crate) async fn run_prompts(&self, options: Options, prompts: &[&str]) -> (String, Value) {
        let mut host = self.host_with_replies(["1", "2", "3", "4"], options).start().await.unwrap();
        let mut session = String::new();
        for prompt in prompts {
            session = host.run(*prompt).await.unwrap().session_id;
        }
        let asked = host.model_requests().last().unwrap().body.clone();
        host.finish().await.unwrap();
        (session, asked)
    }

    /// The error of a session that cannot start.
    pub(crate) async fn start_error(&self, options: Options) -> String {
        let mut host = self.host_with_replies(["1"], options).start().await.unwrap();
        let result = host.next_result().await.unwrap();
        assert!(result.is_error && result.num_turns == 0);
        assert_eq!(host.finish().await.unwrap().code, 1);
        result.errors.unwrap().join("\n")
    }

    pub(crate) fn transcript_paths(&self) -> Vec<PathBuf> {
        let projects = self.root.path().join("config/projects");
        let folders = std::fs::read_dir(projects)
            .unwrap()
            .flat_map(|folder| std::fs::read_dir(folder.unwrap().path()).unwrap());
        folders
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
            .collect()
    }

    pub(crate) fn transcript_lines(&self, session: &str) -> Vec<Value> {
        let path = self
            .transcript_paths()
            .into_iter()
            .find(|path| path.to_string_lossy().contains(session))
            .unwrap();
        let text = std::fs::read_to_string(path).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// Options that resume a session.
pub(crate) fn resume_options(session: &str) -> Options {
    Options { resume: Some(session.into()), ..Options::default() }
}
