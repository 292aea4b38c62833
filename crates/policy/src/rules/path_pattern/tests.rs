//! Paths that file patterns match, as tables.

use super::*;
use PermissionBehavior::{Allow, Ask, Deny};

fn pattern(content: &str, behavior: PermissionBehavior) -> PathPattern {
    let anchors =
        Anchors { home: "/home/me".into(), original_cwd: "/w/cwd".into(), source_root: "/w/root".into() };
    PathPattern::new(content, behavior, &anchors, &Path::to_path_buf).unwrap()
}

#[test]
fn pattern_matches() {
    let rows = [
        // anchors
        ("//etc/hosts", Allow, "/etc/hosts", true),
        ("//**/.env", Deny, "/x/y/.env", true),
        ("~/.ssh/**", Deny, "/home/me/.ssh/id", true),
        ("~/.ssh/**", Deny, "/home/me/.ssh", true),
        ("~/x", Allow, "/home/me/sub/x", false),
        ("/src/**", Allow, "/w/root/src/a", true),
        ("/src/**", Deny, "/w/root/vendor/src/a", false),
        ("/src/**", Allow, "/w/cwd/src/a", false),
        ("./src/**", Allow, "/w/cwd/src/a", true),
        ("../other/**", Deny, "/w/other/a", true),
        ("../*.x", Deny, "/w/a.x", true),
        // depth
        ("docs", Allow, "/w/cwd/a/docs/x", true),
        ("*.md", Allow, "/w/cwd/a/b.md", true),
        (".env", Deny, "/w/cwd/sub/.env", true),
        (".env", Deny, "/w/other/.env", false),
        ("src/**", Allow, "/w/cwd/src/a/b", true),
        ("src/**", Allow, "/w/cwd/v/src/a", false),
        ("src/**", Deny, "/w/cwd/v/src/a", true),
        ("vend*/**", Ask, "/w/cwd/v/vendor/a", true),
        ("./src/**", Ask, "/w/cwd/v/src/a", true),
        ("a/b/**", Deny, "/w/cwd/a/b", true),
        ("a/b/**", Deny, "/w/cwd/a/b/c", true),
        ("a/b/**", Deny, "/w/cwd/x/a/b/c", false),
        ("sub/*.x", Allow, "/w/cwd/sub/a.x", true),
        ("sub/*.x", Allow, "/w/cwd/sub/d/a.x", false),
        ("**/x/**", Allow, "/w/cwd/a/x/b", true),
        ("**", Allow, "/w/cwd/a/b", true),
        ("**", Allow, "/w/else", false),
        ("//**", Allow, "/anything", true),
        // directories only
        ("q/", Deny, "/w/cwd/q", false),
        ("q/", Deny, "/w/cwd/q/a", true),
        ("q/", Deny, "/w/cwd/x/q/a", true),
        ("/d/", Deny, "/w/root/d/a", true),
        // dialect
        ("a?c", Allow, "/w/cwd/abc", true),
        ("a?c", Allow, "/w/cwd/a/c", false),
        ("*", Allow, "/w/cwd/a/b", true),
        ("[[]x].txt", Deny, "/w/cwd/[x].txt", true),
        ("[ab]", Allow, "/w/cwd/a", true),
        ("[!ab]", Allow, "/w/cwd/a", false),
        ("{a,b}", Allow, "/w/cwd/a", false),
        ("{a,b}", Allow, "/w/cwd/{a,b}", true),
        ("\\*", Allow, "/w/cwd/*", true),
        ("\\*", Allow, "/w/cwd/a", false),
        // case
        ("secrets", Deny, "/w/cwd/SECRETS/x", true),
        ("SECRETS", Ask, "/w/cwd/secrets/x", true),
        ("secrets", Allow, "/w/cwd/SECRETS/x", false),
        ("caf\u{e9}", Deny, "/w/cwd/cafe\u{301}", true),
        ("CAF\u{c9}", Deny, "/w/cwd/caf\u{e9}", true),
        ("key", Deny, "/w/cwd/\u{212a}ey", true),
        ("caf\u{e9}s.Key", Deny, "/w/cwd/cafe\u{301}S.KEY", true),
        ("cafe", Deny, "/w/cwd/cafe\u{301}", false),
        ("*[.]Key", Deny, "/w/cwd/a.kEY", true),
        ("a[x]y]z", Deny, "/w/cwd/axy]z", true),
        ("a[]x]z", Deny, "/w/cwd/a]z", true),
        ("a[!]x]z", Deny, "/w/cwd/abz", true),
        ("ab\\[c]d", Deny, "/w/cwd/ab[c]d", true),
        ("ab[c\\]d]e", Deny, "/w/cwd/abcd]e", true),
        // a deny rule with an invalid glob matches its text
        ("[x", Deny, "/w/cwd/[x", true),
    ];
    for (content, behavior, path, expected) in rows {
        let got = pattern(content, behavior).matches(Path::new(path));
        assert_eq!(got, expected, "{behavior} {content} {path}");
    }
}

#[test]
fn deny_rule_applies_in_worktrees() {
    let tree = Path::new("/w/cwd/.claude/worktrees/one/a/b/key");
    let nested = Path::new("/w/cwd/.claude/worktrees/one/.claude/worktrees/two/A/b/key");
    let deny = pattern("a/b/**", Deny);
    assert!(deny.matches(tree) && deny.matches(nested));
    assert!(deny.may_match_below(Path::new("/w/cwd/.claude/worktrees/one/a")));
    assert!(!deny.matches(Path::new("/w/cwd/.claude/worktrees/one/a/c")));
    assert!(!pattern("a/b/**", Allow).matches(tree));
}
