//! The ladder: each tier by itself, and what happens if none works. S-28, S-31.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod support;

use support::{World, confined_test};
use whimbrel_sandbox::ladder::{Tier, TierChoice, find_bwrap, probe};
use whimbrel_sandbox::policy::{PathRule, ProcView};
use whimbrel_sandbox::program::LauncherProgram;
use whimbrel_sandbox::session::StartError;

fn assert_confines(world: &mut World) {
    world.git_init();
    world.put("ws/secrets/key", "CANARY\n");
    world.rules().deny_read =
        vec![PathRule::Literal(world.path("ws/secrets")), PathRule::Literal(world.path("home/.ssh/id_rsa"))];
    let outside = world.path("outside").display().to_string();
    let text = world.run(&format!(
        "echo ok > new; echo x > {outside}/evil; echo x >> {outside}/data.txt; echo x > .git/hooks/x; mv .git g; cat secrets/key ~/.ssh/id_rsa; mv secrets s2; cat s2/key
         echo x > $TMPDIR/t && echo x > /tmp/t && echo TEMPORARY; unshare -Ur true && echo BAD; grep CapEff /proc/self/status; python3 -c 'import socket; socket.socket(1)'
         python3 -c 'import socket; socket.create_connection((\"192.0.2.1\", 80), 2)'"
    ));
    world.assert_untouched();
    assert_eq!(world.read("ws/new").as_deref(), Some("ok\n"));
    assert!(world.path("ws/.git/HEAD").exists() && !world.path("ws/.git/hooks/x").exists());
    assert!(text.contains("TEMPORARY") && text.contains("CapEff:\t0000000000000000"), "{text}");
    assert!(text.contains("Operation not permitted") && text.contains("unreachable"), "{text}");
    assert!(!text.contains("CANARY") && !text.contains("BAD"), "{text}");
}

#[test]
fn namespaces_tier_confines() {
    assert_confines(&mut World::in_tier(Tier::Namespaces));
}

/// Needs the package bubblewrap, as `cargo xtask test` says.
#[test]
fn bwrap_tier_confines() {
    assert_confines(&mut World::in_tier(Tier::Bwrap));
}

#[test]
fn machine_proc_tier_confines_if_the_policy_agrees() {
    let mut world = World::in_tier(Tier::MachineProc);
    let refused = world.session.prepare(&world.policy, world.spec("true"));
    assert!(matches!(refused, Err(StartError::ProcRefused)));
    world.policy.proc_view = ProcView::MachineIfRefused;
    assert_confines(&mut world);
}

#[test]
fn without_any_tier_there_is_no_sandbox() {
    // A program that ends without a report, as one does that is no launcher.
    let launcher = LauncherProgram::at(std::path::Path::new("/bin/false")).unwrap();
    let error = probe(&launcher, None, TierChoice::BestOrWeaker).unwrap_err();
    let tiers: Vec<_> = error.tiers.iter().map(|(tier, _)| *tier).collect();
    assert_eq!(tiers, Tier::ALL);
    let text = error.to_string();
    assert!(text.contains("namespaces: launcher: ") && text.contains("bwrap is not installed"), "{text}");
    assert!(probe(&launcher, find_bwrap().as_deref(), TierChoice::Only(Tier::Namespaces)).is_err());
}

confined_test! {
    /// S-16: in the tiers without a limit per namespace. The kernel does not count the root of the machine.
    fn number_of_processes_is_limited_in_weaker_tiers(world) {
        let is_root_of_machine = rustix::process::geteuid().is_root()
            && std::fs::read_to_string("/proc/self/uid_map").unwrap().split_whitespace().last() != Some("1");
        drop(world);
        for tier in [Tier::Bwrap, Tier::MachineProc] {
            let mut world = World::in_tier(tier);
            world.policy.proc_view = ProcView::MachineIfRefused;
            world.policy.limits.processes = 400;
            world.put("ws/p.py", "
import os, time
try:
    for n in range(600):
        if os.fork() == 0: time.sleep(600)
    print('FREE')
except OSError as e: print('STOPPED', n, e)
");
            let text = world.run("python3 p.py");
            assert!(text.contains(if is_root_of_machine { "FREE" } else { "STOPPED" }), "{tier:?}: {text}");
        }
    }
}
