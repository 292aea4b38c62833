//! A session to make calls in, and somebody who swaps things under it.

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
use whimbrel_wire::Frame;
use whimbrel_wire::content::ResultContent;
use whimbrel_wire::permission::PermissionMode;

use crate::gate::{Gate, Verdict};
use crate::outbox::Outbox;
use crate::permission::Rights;
use crate::permission::rights::{Bypass, Grants};
use crate::settings::Settings;
use crate::toolbox::{Offered, Toolbox};
use crate::tools::{Call, Output, all};
use crate::workshop::{Bench, Made, Wanted, Workshop};
use crate::workspace::Workspace;

/// How often things change places, at least.
const SWAPS: usize = 100_000;
/// How many calls are made meanwhile, at least.
const CALLS: usize = 600;

/// A session that asks nobody, in the folder `work`; beside it lies `outside`.
pub(super) struct Room {
    folder: TempDir,
    pub(super) bench: Bench,
    _host: mpsc::Receiver<Frame>,
}

impl Room {
    pub(super) fn new(mode: PermissionMode, deny: &[&str]) -> Self {
        let folder = TempDir::new().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["work", "outside"] {
            fs::create_dir(root.join(name)).unwrap();
        }
        let env = BTreeMap::from([("HOME".to_owned(), "/nowhere".to_owned())]);
        let workspace = Arc::new(Workspace::new(root.join("work"), root.join("spill"), env));
        let deny = deny.iter().map(|rule| (*rule).to_owned()).collect();
        let grants = Grants { mode, deny, ..Grants::default() };
        let granted = Rights::grant(Arc::clone(&workspace), Settings::none(), grants, Bypass::Unavailable);
        let rights = granted.unwrap().rights;
        let offered: Vec<Arc<Offered>> = all().into_iter().map(|tool| Arc::new(Offered::new(tool))).collect();
        let (frames, host) = mpsc::channel(64);
        let outbox = Outbox::new("session".into(), frames, CancellationToken::new());
        let bench = Bench {
            toolbox: Arc::new(Toolbox::pick(&offered, None, &rights, crate::audience::Person::Absent)),
            gate: Gate::unattended(rights, &workspace, outbox),
            call: Call::alone(workspace),
        };
        Self { folder, bench, _host: host }
    }

    pub(super) fn path(&self, below: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(below)
    }

    pub(super) fn put(&self, below: &str, text: &str) {
        fs::create_dir_all(self.path(below).parent().unwrap()).unwrap();
        fs::write(self.path(below), text).unwrap();
    }

    /// Makes a call the whole way.
    pub(super) async fn call(&self, tool: &str, input: Value) -> Made {
        let mut workshop = Workshop::new(Arc::new(self.bench.clone()));
        workshop.take(Wanted { id: "toolu_1".into(), tool: tool.into(), input, bad_input: None });
        workshop.reply_complete();
        workshop.next().await.unwrap()
    }

    /// Makes a call, and does something between the judgement and the work.
    pub(super) async fn call_with(&self, tool: &str, input: Value, between: impl FnOnce()) -> Output {
        let tool = self.bench.toolbox.find(tool).unwrap();
        let permit = self.bench.gate.pass(&tool, "toolu_1", input, &self.bench.call.cancel).await.unwrap();
        let Verdict::Go { input, place } = permit.verdict else { panic!("{permit:?}") };
        between();
        tool.tool().run(input, Call { place, ..self.bench.call.clone() }).await
    }
}

pub(super) fn says(made: &Made) -> String {
    match &made.content {
        ResultContent::Text(text) => text.clone(),
        ResultContent::Blocks(blocks) => serde_json::to_string(blocks).unwrap(),
    }
}

pub(super) fn swap(one: &Path, other: &Path) {
    if renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).is_err() {
        // A file system that cannot do it at once.
        let aside = one.with_extension("aside");
        for (from, to) in [(one, aside.as_path()), (other, one), (&aside, other)] {
            fs::rename(from, to).unwrap();
        }
    }
}

/// Somebody who swaps two things all the time, as fast as the system can.
pub(super) struct Swapper {
    swaps: Arc<AtomicUsize>,
    over: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Swapper {
    pub(super) fn begin(one: PathBuf, other: PathBuf) -> Self {
        let (swaps, over) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (count, end) = (Arc::clone(&swaps), Arc::clone(&over));
        let thread = std::thread::spawn(move || {
            while !end.load(Ordering::Relaxed) {
                swap(&one, &other);
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        Self { swaps, over, thread }
    }

    pub(super) fn is_enough(&self, calls: usize) -> bool {
        assert!(!self.thread.is_finished(), "nothing is swapped any more");
        calls >= CALLS && self.swaps.load(Ordering::Relaxed) >= SWAPS
    }

    pub(super) fn end(self) {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
    }
}

/// All that can be seen of a folder and of what is in it.
pub(super) type Traces = BTreeMap<PathBuf, Trace>;

/// All that can be seen of one entry.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Trace {
    pub(super) bytes: Vec<u8>,
    inode: u64,
    /// When the bytes and when the rest changed last.
    times: [(i64, i64); 2],
}

/// Looks at a folder. Even a file that was made and removed at once leaves its trace in the times.
pub(super) fn traces(folder: &Path) -> Traces {
    let facts = |path: &Path| {
        let found = fs::symlink_metadata(path).unwrap();
        let times = [(found.mtime(), found.mtime_nsec()), (found.ctime(), found.ctime_nsec())];
        Trace { bytes: fs::read(path).unwrap_or_default(), inode: found.ino(), times }
    };
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.chain([folder.to_path_buf()]).map(|path| (path.clone(), facts(&path))).collect()
}
