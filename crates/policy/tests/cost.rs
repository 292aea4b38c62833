//! Cost of decisions: no disk access without a path, and bounded work for every command. The benchmark
//! `cargo xtask bench permission-decisions` measures time.

use std::cell::Cell;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::json;
use whimbrel_policy::fs::{FakeFs, FileType, FsView};
use whimbrel_policy::shell::{ShellContext, UnanalyzableCause, analyze};
use whimbrel_policy::{
    Call, CallContext, Decision, Reason, RuleLayer, RuleSet, RuleSource, ToolProperties, WorkDirs, decide,
};
use whimbrel_wire::permission::PermissionMode;

/// A disk that panics on access.
#[derive(Debug)]
struct PanickingFs;

impl FsView for PanickingFs {
    fn lstat(&self, path: &Path) -> Option<FileType> {
        panic!("{} was accessed", path.display())
    }
    fn readlink(&self, path: &Path) -> Option<PathBuf> {
        panic!("{} was accessed", path.display())
    }
    fn readdir(&self, path: &Path, _: usize) -> Option<Vec<OsString>> {
        panic!("{} was accessed", path.display())
    }
}

fn rules() -> RuleSet {
    let mut rules = RuleSet::new(Path::new("/home/me"), Path::new("/w"));
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    let layer = RuleLayer {
        allow: texts(&["Bash(make *)", "Bash(git * main)", "Read(//data/**)", "Edit(src/**)"]),
        ask: texts(&["Bash(git push *)"]),
        deny: texts(&["Bash(curl *)", "Bash(* --force)", "Read(secrets/**)", "Read(.env)", "Edit(//etc/**)"]),
        ..RuleLayer::new(RuleSource::ProjectSettings, Path::new("/w"))
    };
    let report = rules.add_layer(&layer, &FakeFs::default());
    assert_eq!(report.errors, []);
    rules
}

fn decide_command(rules: &RuleSet, command: &str, fs: &dyn FsView) -> Decision {
    decide_command_in(PermissionMode::Default, rules, command, fs)
}

fn decide_command_in(mode: PermissionMode, rules: &RuleSet, command: &str, fs: &dyn FsView) -> Decision {
    let dirs = WorkDirs::new(Path::new("/w"), &FakeFs::default());
    let context = CallContext::new(
        Path::new("/w"),
        Path::new("/home/me"),
        fs,
        ToolProperties::for_tool("Bash", &["command"]),
    );
    let input = json!({"command": command});
    decide(&Call { tool: "Bash", input: &input }, rules, mode, &dirs, &context)
}

#[test]
fn command_without_paths_does_not_access_the_disk() {
    let rules = rules();
    for command in
        ["make all", "npm run build", "echo a b c", "git push origin main", "curl x", "pwd && make"]
    {
        decide_command(&rules, command, &PanickingFs);
    }
}

/// A disk that counts directory reads.
#[derive(Debug)]
struct DirCountingFs(FakeFs, Cell<usize>);

impl FsView for DirCountingFs {
    fn lstat(&self, path: &Path) -> Option<FileType> {
        self.0.lstat(path)
    }
    fn readlink(&self, path: &Path) -> Option<PathBuf> {
        self.0.readlink(path)
    }
    fn readdir(&self, path: &Path, limit: usize) -> Option<Vec<OsString>> {
        self.1.set(self.1.get() + 1);
        self.0.readdir(path, limit)
    }
}

#[test]
fn glob_is_expanded_once_for_all_rules() {
    let files: Vec<String> = (0..90).map(|number| format!("/w/many/{number}")).collect();
    let fs = DirCountingFs(FakeFs::with_files(files.iter().map(String::as_str)), Cell::new(0));
    let mut rules = RuleSet::new(Path::new("/home/me"), Path::new("/w"));
    let deny = (0..20).map(|number| format!("Read(many/x{number})")).collect();
    let layer = RuleLayer { deny, ..RuleLayer::new(RuleSource::ProjectSettings, Path::new("/w")) };
    rules.add_layer(&layer, &fs);
    let globs: String = (0..50).map(|number| format!("many/q{number}* ")).collect();
    decide_command(&rules, &format!("mytool; cat {globs}"), &fs);
    assert!(fs.1.get() <= 50, "{}", fs.1.get());
}

/// An endless disk: every path is a directory with a thousand entries.
#[derive(Debug)]
struct EndlessFs(Cell<usize>);

impl FsView for EndlessFs {
    fn lstat(&self, _: &Path) -> Option<FileType> {
        Some(FileType::Directory)
    }
    fn readlink(&self, _: &Path) -> Option<PathBuf> {
        None
    }
    fn readdir(&self, _: &Path, limit: usize) -> Option<Vec<OsString>> {
        self.0.set(self.0.get() + 1);
        Some((0..limit.min(1_000)).map(|number| format!("d{number}").into()).collect())
    }
}

#[test]
fn disk_budget_is_bounded_and_never_allows() {
    let allow_all = || {
        let mut rules = RuleSet::new(Path::new("/home/me"), Path::new("/w"));
        let allow = vec!["Bash(cat *)".to_owned(), "Bash(rm *)".to_owned()];
        rules.add_layer(
            &RuleLayer { allow, ..RuleLayer::new(RuleSource::ProjectSettings, Path::new("/w")) },
            &FakeFs::default(),
        );
        rules
    };
    let none = RuleSet::new(Path::new("/home/me"), Path::new("/w"));
    let rows = [
        ("reads", PermissionMode::Default, &rules(), "cat */*/x"),
        ("a rule with a specifier", PermissionMode::Default, &allow_all(), "rm */*/d5"),
        ("a removal without rules", PermissionMode::BypassPermissions, &none, "rm -r */*/d5"),
    ];
    for (name, mode, rules, command) in rows {
        let fs = EndlessFs(Cell::new(0));
        let decision = decide_command_in(mode, rules, command, &fs);
        assert!(matches!(decision, Decision::Ask(_)), "{name}: {decision:?}");
        assert!((2..200).contains(&fs.0.get()), "{name}: {}", fs.0.get());
    }
    let denied =
        decide_command_in(PermissionMode::BypassPermissions, &rules(), "cat */*/x", &EndlessFs(Cell::new(0)));
    assert!(matches!(denied, Decision::Deny(_)), "{denied:?}");
}

#[test]
fn many_directories_times_many_files_are_never_allowed() {
    let fs = FakeFs::with_files(["/w/src/a.txt"]);
    // So many words that only a few of the directories are tracked.
    let words: String = (0..1_500).map(|number| format!(" f{number}")).collect();
    let moves: String = (0..60).map(|number| format!("cd d{number}; ")).collect();
    let command = format!("{moves}cat{words}");
    assert!(command.len() < 10_000, "{}", command.len());
    let none = RuleSet::new(Path::new("/home/me"), Path::new("/w"));
    let asked = decide_command_in(PermissionMode::Default, &none, &command, &fs);
    assert!(matches!(asked, Decision::Ask(_)), "{asked:?}");
    let denied = decide_command_in(PermissionMode::BypassPermissions, &rules(), &command, &fs);
    assert!(matches!(denied, Decision::Deny(_)), "{denied:?}");
}

#[test]
fn many_rules_do_not_exhaust_the_walk() {
    let files: Vec<String> = (0..600).map(|number| format!("/w/d{}/{number}", number % 60)).collect();
    let fs = FakeFs::with_files(files.iter().map(String::as_str));
    let mut rules = RuleSet::new(Path::new("/home/me"), Path::new("/w"));
    let deny = (0..90).map(|number| format!("Read(**/secret{number})")).collect();
    rules.add_layer(&RuleLayer { deny, ..RuleLayer::new(RuleSource::ProjectSettings, Path::new("/w")) }, &fs);
    let allowed = decide_command(&rules, "grep -r x .", &fs);
    assert!(matches!(allowed, Decision::Allow(_)), "{allowed:?}");
}

#[test]
fn one_walk_serves_all_rules() {
    let files: Vec<String> = (0..4_000).map(|number| format!("/w/d{}/{number}", number % 60)).collect();
    let fs = FakeFs::with_files(files.iter().map(String::as_str)).with_link("/w/d1/l", "/w/d2");
    let mut rules = RuleSet::new(Path::new("/home/me"), Path::new("/w"));
    let deny = (0..40).map(|number| format!("Read(**/secret{number})")).collect();
    rules.add_layer(&RuleLayer { deny, ..RuleLayer::new(RuleSource::ProjectSettings, Path::new("/w")) }, &fs);
    for command in ["grep -r x .", "grep -R x ."] {
        let looks = CountingFs::new(fs.clone());
        // `grep -R` follows links, which needs approval; no rule matches either command.
        match decide_command(&rules, command, &looks) {
            Decision::Allow(_) => {}
            Decision::Ask(question) => assert_eq!(question.reason, Reason::NeedsApproval, "{command}"),
            Decision::Deny(reason) => panic!("{command}: {reason:?}"),
        }
        // Each directory is opened once, each entry is looked up at most once.
        assert!(looks.1.get() < 4_500, "{command}: {}", looks.1.get());
    }
    let hidden = FakeFs::with_files(["/w/d9/e/SECRET7"]);
    let asked = decide_command(&rules, "grep -r x .", &hidden);
    assert!(matches!(asked, Decision::Ask(_)), "{asked:?}");
}

/// A disk that counts every access.
#[derive(Debug)]
struct CountingFs(FakeFs, Cell<usize>);

impl CountingFs {
    fn new(fs: FakeFs) -> Self {
        Self(fs, Cell::new(0))
    }

    fn count(&self) {
        self.1.set(self.1.get() + 1);
    }
}

impl FsView for CountingFs {
    fn lstat(&self, path: &Path) -> Option<FileType> {
        self.count();
        self.0.lstat(path)
    }
    fn readlink(&self, path: &Path) -> Option<PathBuf> {
        self.count();
        self.0.readlink(path)
    }
    fn readdir(&self, path: &Path, limit: usize) -> Option<Vec<OsString>> {
        self.count();
        self.0.readdir(path, limit)
    }
}

#[test]
fn globs_share_lookups_within_a_budget() {
    let dirs: Vec<String> = (0..300).map(|number| format!("/w/d{number}/")).collect();
    let fs =
        FakeFs::with_files(dirs.iter().map(String::as_str).chain(["/etc/passwd"])).with_link("/w/zl", "/etc");
    let globs: String = (0..3_000).map(|number| format!(" */x{number}")).collect();
    let mut etc = RuleSet::new(Path::new("/home/me"), Path::new("/w"));
    let deny = vec!["Read(//etc/**)".to_owned()];
    etc.add_layer(&RuleLayer { deny, ..RuleLayer::new(RuleSource::ProjectSettings, Path::new("/w")) }, &fs);
    let looks = CountingFs::new(fs);
    let denied =
        decide_command_in(PermissionMode::BypassPermissions, &etc, &format!("cat{globs} */passwd"), &looks);
    assert!(matches!(denied, Decision::Deny(_)), "{denied:?}");
    assert!(looks.1.get() < 45_000, "{}", looks.1.get());
    // A path without glob is still checked.
    let plainly = decide_command(&etc, &format!("cat{globs}; cat zl/passwd"), &looks.0);
    assert!(matches!(plainly, Decision::Deny(_)), "{plainly:?}");
}

#[test]
fn thousands_of_paths_do_not_hide_one() {
    let fs = FakeFs::with_files(["/w/secrets/key", "/w/src/a.txt"]).with_link("/w/open", "/w/secrets");
    let rules = rules();
    let many: String = (0..14_000).map(|number| format!(" f{number}")).collect();
    for command in [
        format!("cat{many} secrets/key"),
        format!("cat secrets/key{many}"),
        format!("cat{many}; cat SECRETS/key"),
        format!("cat{many}; cat src/../secrets/key"),
    ] {
        for mode in [PermissionMode::Default, PermissionMode::BypassPermissions] {
            let denied = decide_command_in(mode, &rules, &command, &fs);
            assert!(matches!(denied, Decision::Deny(_)), "{mode:?}: {denied:?}");
        }
    }
    let linked =
        decide_command_in(PermissionMode::BypassPermissions, &rules, &format!("cat{many} open/key"), &fs);
    assert!(matches!(linked, Decision::Deny(_)), "{linked:?}");
}

#[test]
fn repeated_input_is_analyzed_once() {
    let body: String = (0..2_000).map(|number| format!("rm f{number}; ")).collect();
    let rows = [
        ("commands", "a; ".repeat(30_000), 500),
        ("texts", "sh -c 'rm f; rm g'; ".repeat(5_000), 1_000),
        ("meanings", format!("alias a='{body}'; {}", "a; ".repeat(10_000)), 12_000),
        ("values", format!("A='{body}'; {}", "eval $A; ".repeat(5_000)), 12_000),
    ];
    for (name, command, most) in rows {
        let analysis = analyze(&command, &ShellContext { home: "/home/me" });
        assert!(analysis.commands.len() < most, "{name}: {}", analysis.commands.len());
    }
}

#[test]
fn derived_work_is_bounded_and_reported() {
    let numbered = |count: usize, piece: fn(usize) -> String| (0..count).map(piece).collect::<String>();
    let rows = [
        ("texts", numbered(15_000, |number| format!("eval 'a{number}; b{number}; c{number}'; "))),
        ("wrappers", numbered(12_000, |number| format!("nice nice nice nice a{number}; "))),
        ("braces", numbered(500, |number| format!("a {{1..999}}{number}; "))),
    ];
    for (name, command) in rows {
        let analysis = analyze(&command, &ShellContext { home: "/home/me" });
        assert!(analysis.truncated, "{name}");
        assert!(analysis.commands.len() < 60_000, "{name}: {}", analysis.commands.len());
        let words: usize = analysis.commands.iter().map(|command| command.words.len()).sum();
        assert!(words < 200_000, "{name}: {words}");
    }
}

#[test]
fn truncated_analysis_allows_nothing() {
    let dirs: Vec<String> = (0..300).map(|number| format!("/w/d{number}/")).collect();
    let fs = FakeFs::with_files(dirs.iter().map(String::as_str).chain(["/etc/passwd"]))
        .with_link("/w/d1/l", "/etc")
        .with_link("/w/zl", "/etc");
    let none = RuleSet::new(Path::new("/home/me"), Path::new("/w"));
    // So many words that the target of `cd` is not tracked.
    let words = "x ".repeat(4_800);
    let other_dir = format!("cd d1 && command command command cat l/passwd {words}");
    let asked = decide_command(&none, &other_dir, &fs);
    assert!(matches!(asked, Decision::Ask(_)), "{asked:?}");
    // So many globs that the last one is not expanded.
    let mut etc = RuleSet::new(Path::new("/home/me"), Path::new("/w"));
    let deny = vec!["Read(//etc/**)".to_owned()];
    etc.add_layer(&RuleLayer { deny, ..RuleLayer::new(RuleSource::ProjectSettings, Path::new("/w")) }, &fs);
    let globs: String = (0..1_200).map(|number| format!(" */x{number}*")).collect();
    let through_link = format!("cat{globs}; cat z*/passwd");
    let denied = decide_command_in(PermissionMode::BypassPermissions, &etc, &through_link, &fs);
    assert!(matches!(denied, Decision::Deny(_)), "{denied:?}");
    // So much input for `xargs` that the last item is not inserted.
    let many: String = (0..150).map(|number| format!("echo f{number} | xargs rm; ")).collect();
    let removal = format!("{many}echo / | xargs rm -rf");
    for mode in [PermissionMode::BypassPermissions, PermissionMode::Default] {
        let Decision::Ask(question) = decide_command_in(mode, &none, &removal, &fs) else {
            panic!("{mode:?}: not asked")
        };
        assert_eq!(question.reason, Reason::Unanalyzable(UnanalyzableCause::TooDeep), "{mode:?}");
    }
}

#[test]
fn input_texts_do_not_multiply_with_readers() {
    let command: String = (0..4_000).map(|number| format!("echo f{number} | xargs rm; ")).collect();
    let analysis = analyze(&command, &ShellContext { home: "/home/me" });
    assert!(analysis.commands.len() < 40_000, "{}", analysis.commands.len());
    assert_eq!(analysis.unanalyzable.iter().filter(|kind| **kind == UnanalyzableCause::TooDeep).count(), 1);
}

#[test]
fn huge_command_is_decided_and_not_allowed() {
    let repeated = |piece: &str| piece.repeat(100_000 / piece.len());
    let commands = [
        repeated("true && ") + "curl x",
        repeated("a ") + "; curl x",
        format!("echo {}; curl x", repeated("x")),
        format!("echo '{}'; curl x", repeated("y ")),
        repeated("(") + "curl x",
        repeated("$(") + "curl x",
        repeated("`"),
        repeated("{a,b}"),
        repeated("{a,b} "),
        repeated("if true; then "),
        repeated("sudo "),
        repeated("env A=1 "),
        repeated("\""),
        repeated("cat <<E\nx\nE\n"),
        repeated("cat $X; "),
        repeated("cat src/a.txt; "),
        repeated("rm -rf x* "),
        repeated("A=$A; "),
        repeated("sh -c '"),
        repeated("eval "),
        repeated("\\"),
        repeated("[[ a =~ b ]] && "),
        repeated("cd a; ") + "cat b",
        repeated("x=y; $x "),
        repeated("find . -exec "),
        repeated("xargs sh -c 'a' "),
        (0..9_000).map(|number| format!("cat f{number}; ")).collect(),
        (0..5_000).map(|number| format!("cd d{number}; cat f; ")).collect(),
        (0..9_000).map(|number| format!("cat g{number}*; ")).collect(),
        (0..5_000).map(|number| format!("ln -s a{number} b{number}; cat b{number}; ")).collect(),
        (0..5_000).map(|number| format!("echo $((a[{number}]+1)); ")).collect(),
        (0..5_000).map(|number| format!("echo f{number} | xargs -I{{}} sh -c 'cat {{}}'; ")).collect(),
        format!("cp {}/w", repeated("a/b ")),
        format!("curl -{}", repeated("x")),
        format!("awk '{}'; curl x", repeated("\"a\" | ")),
        format!("awk '{}'; curl x", repeated("| \"(\" ")),
        format!("sed '{}'; curl x", repeated("1ea;")),
        format!("sed '{}'; curl x", repeated("s/a/b/e\n")),
        repeated("sed '1e a' f; ") + "curl x",
        format!("python3 -c '{}'; curl x", repeated("system(\"git\");")),
        repeated("git -c a.b=c log; ") + "curl x",
        repeated("git stash; ") + "curl x",
    ];
    let rules = rules();
    for command in &commands {
        let decision = decide_command(&rules, command, &FakeFs::with_files(["/w/src/a.txt"]));
        let start: String = command.chars().take(20).collect();
        assert!(!matches!(decision, Decision::Allow(_)), "{start}");
    }
}
