//! Test session, and a thread that swaps paths.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use whimbrel_config::settings::Settings;
use whimbrel_tools::api::{AgentToolSet, ToolContext, ToolEntry, ToolResult};
use whimbrel_tools::builtin::builtin_tools;
use whimbrel_tools::permission::PermissionState;
use whimbrel_tools::permission::state::{Bypass, InitialPermissions};
use whimbrel_tools::workspace::Workspace;
use whimbrel_transport::frame_sender::FrameSender;
use whimbrel_wire::Frame;
use whimbrel_wire::content::ResultContent;
use whimbrel_wire::permission::PermissionMode;

use crate::permission_checker::{CheckDecision, PermissionChecker};
use crate::tool_scheduler::{ToolCall, ToolCallResult, ToolEnv, ToolScheduler};

/// Minimum number of swaps.
const MIN_SWAPS: usize = 100_000;
/// Minimum number of calls meanwhile.
const MIN_CALLS: usize = 600;

/// A session without prompts in the directory `work`, next to a directory `outside`.
pub(super) struct SwapTestSession {
    dir: TempDir,
    pub(super) env: ToolEnv,
    _frames: mpsc::Receiver<Frame>,
}

impl SwapTestSession {
    pub(super) fn new(mode: PermissionMode, deny: &[&str]) -> Self {
        let dir = TempDir::new().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for name in ["work", "outside"] {
            fs::create_dir(root.join(name)).unwrap();
        }
        let env = BTreeMap::from([("HOME".to_owned(), "/nowhere".to_owned())]);
        let workspace = Arc::new(Workspace::new(root.join("work"), root.join("spill"), env));
        let deny = deny.iter().map(|rule| (*rule).to_owned()).collect();
        let initial = InitialPermissions { mode, deny, ..InitialPermissions::default() };
        let built =
            PermissionState::build(Arc::clone(&workspace), Settings::empty(), initial, Bypass::Unavailable);
        let permissions = built.unwrap().state;
        let tools: Vec<Arc<ToolEntry>> =
            builtin_tools().into_iter().map(|tool| Arc::new(ToolEntry::new(tool))).collect();
        let (frames, host) = mpsc::channel(64);
        let sender = FrameSender::new("session".into(), frames, CancellationToken::new());
        let env = ToolEnv {
            tool_set: Arc::new(AgentToolSet::select(
                &tools,
                None,
                &permissions,
                whimbrel_tools::responders::UserPresence::Absent,
            )),
            checker: PermissionChecker::for_tests(permissions, &workspace, sender),
            context: ToolContext::for_test(workspace),
        };
        Self { dir, env, _frames: host }
    }

    pub(super) fn path(&self, relative: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(relative)
    }

    pub(super) fn write_file(&self, relative: &str, text: &str) {
        fs::create_dir_all(self.path(relative).parent().unwrap()).unwrap();
        fs::write(self.path(relative), text).unwrap();
    }

    /// Runs a call through checker and scheduler.
    pub(super) async fn run_tool(&self, tool: &str, input: Value) -> ToolCallResult {
        let mut scheduler = ToolScheduler::new(Arc::new(self.env.clone()));
        scheduler.submit(ToolCall { id: "toolu_1".into(), tool: tool.into(), input, bad_input: None });
        scheduler.mark_reply_complete();
        scheduler.next_result().await.unwrap()
    }

    /// Runs a call, with an action between permission check and execution.
    pub(super) async fn run_tool_after(
        &self,
        tool: &str,
        input: Value,
        between: impl FnOnce(),
    ) -> ToolResult {
        let tool = self.env.tool_set.find(tool).unwrap();
        let outcome =
            self.env.checker.check(&tool, "toolu_1", input, &self.env.context.cancel).await.unwrap();
        let CheckDecision::Allow { input, checked } = outcome.decision else { panic!("{outcome:?}") };
        between();
        tool.tool().run(input, ToolContext { checked, ..self.env.context.clone() }).await
    }
}

pub(super) fn result_text(result: &ToolCallResult) -> String {
    match &result.content {
        ResultContent::Text(text) => text.clone(),
        ResultContent::Blocks(blocks) => serde_json::to_string(blocks).unwrap(),
    }
}

pub(super) fn swap_paths(one: &Path, other: &Path) {
    if renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).is_err() {
        // Fallback for file systems without an atomic exchange.
        let temp_path = one.with_extension("aside");
        for (from, to) in [(one, temp_path.as_path()), (other, one), (&temp_path, other)] {
            fs::rename(from, to).unwrap();
        }
    }
}

/// Swaps two paths continuously on a thread.
pub(super) struct PathSwapper {
    swaps: Arc<AtomicUsize>,
    stopped: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl PathSwapper {
    pub(super) fn start(one: PathBuf, other: PathBuf) -> Self {
        let (swaps, stopped) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (count, end) = (Arc::clone(&swaps), Arc::clone(&stopped));
        let thread = std::thread::spawn(move || {
            while !end.load(Ordering::Relaxed) {
                swap_paths(&one, &other);
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        Self { swaps, stopped, thread }
    }

    pub(super) fn has_run_enough(&self, calls: usize) -> bool {
        assert!(!self.thread.is_finished(), "the swap thread has ended");
        calls >= MIN_CALLS && self.swaps.load(Ordering::Relaxed) >= MIN_SWAPS
    }

    pub(super) fn stop(self) {
        self.stopped.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
    }
}

/// Snapshot of a directory and its entries.
pub(super) type DirSnapshot = BTreeMap<PathBuf, EntrySnapshot>;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct EntrySnapshot {
    pub(super) bytes: Vec<u8>,
    inode: u64,
    /// mtime and ctime.
    times: [(i64, i64); 2],
}

/// Takes a snapshot of a directory. Even a file that was created and removed at once changes its times.
pub(super) fn snapshot_dir(dir: &Path) -> DirSnapshot {
    let snapshot = |path: &Path| {
        let metadata = fs::symlink_metadata(path).unwrap();
        let times = [(metadata.mtime(), metadata.mtime_nsec()), (metadata.ctime(), metadata.ctime_nsec())];
        EntrySnapshot { bytes: fs::read(path).unwrap_or_default(), inode: metadata.ino(), times }
    };
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.chain([dir.to_path_buf()]).map(|path| (path.clone(), snapshot(&path))).collect()
}
