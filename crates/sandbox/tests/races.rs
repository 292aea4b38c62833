//! Commands start while folders and links below the working directory are swapped. Nothing outside may change.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod support;

use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use support::World;
use whimbrel_sandbox::policy::PathRule;

/// Swaps of one test. The check does not depend on their number.
const SWAPS: u64 = 100_000;

/// S-01, S-02, S-30.
#[test]
fn swapped_folders_and_links_lead_nowhere() {
    let mut world = World::new();
    world.git_init();
    world.put("ws/sub/.git/config", "kept\n");
    world.put("ws/sub/secret/key", "CANARY-SUB\n");
    symlink(world.path("outside"), world.path("ws/link")).unwrap();
    let rules = vec![PathRule::Literal(world.path("ws/sub/secret"))];
    world.rules().deny_read = rules.clone();
    world.rules().deny_write = vec![PathRule::Literal(world.path("ws/sub/conf"))];
    let (done, swaps) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let (folder, link): (PathBuf, PathBuf) = (world.path("ws/sub"), world.path("ws/link"));
    let swapper = {
        let (done, swaps) = (Arc::clone(&done), Arc::clone(&swaps));
        std::thread::spawn(move || {
            while !done.load(Ordering::Relaxed) {
                renameat_with(CWD, &folder, CWD, &link, RenameFlags::EXCHANGE).unwrap();
                swaps.fetch_add(1, Ordering::Relaxed);
            }
        })
    };
    let mut ran = 0;
    while swaps.load(Ordering::Relaxed) < SWAPS || ran < 20 {
        let script = "for d in sub link; do echo evil > $d/data.txt; echo evil > $d/.git/config; echo evil > $d/new; rm -rf $d/data.txt; done; echo evil > .git/config; echo evil > .git/hooks/x; true";
        // A path that changes while the command starts is a reason not to start it.
        match world
            .session
            .prepare(&world.policy, world.spec(script))
            .map(|prepared| prepared.spawn().unwrap().wait_blocking())
        {
            Ok(Ok(_)) => ran += 1,
            Ok(Err(error)) => assert!(error.to_string().contains("mounts"), "{error}"),
            Err(error) => panic!("{error}"),
        }
        assert_eq!(world.read("outside/data.txt").as_deref(), Some("outside\n"));
        assert!(!world.path("outside/new").exists() && !world.path("outside/.git").exists());
        assert!(!world.path("ws/.git/hooks/x").exists());
        assert!(!world.read("ws/.git/config").unwrap().contains("evil"));
    }
    done.store(true, Ordering::Relaxed);
    swapper.join().unwrap();
}
