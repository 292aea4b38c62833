use super::*;

fn policies() -> Vec<(&'static str, Policy)> {
    let base = Policy::new("/Users/u/work", "/private/var/folders/x/scratch");
    let rules = FileRules {
        work_directories: vec![],
        allow_write: vec!["/tmp/extra".into()],
        deny_write: vec![
            PathRule::parse("/Users/u/work/conf/prod.json"),
            PathRule::parse("/Users/u/work/**/*.lock"),
        ],
        deny_read: vec![PathRule::parse("/Users/u/.ssh"), PathRule::parse("/Users/u/**/*.{pem,key}")],
        allow_read: vec!["/Users/u/.ssh/known_hosts".into()],
        hidden: vec!["/Users/u/.whimbrel/credentials.json".into()],
        protected_names: vec![".claude".into(), ".mcp.json".into()],
    };
    vec![
        ("default", base.clone()),
        ("rules", Policy { files: FileLayer::Confined(rules), ..base.clone() }),
        (
            "network",
            Policy {
                files: FileLayer::Open,
                network: Network::Proxied(LoopbackScope::Session),
                unix_sockets: UnixSockets::Paths(vec!["/var/run/docker.sock".into()]),
                ..base
            },
        ),
    ]
}

/// S-33.
#[test]
fn profiles_match_their_golden_files() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/macos/golden");
    for (name, policy) in policies() {
        let Profile { text, parameters } = profile(&policy, 17_911);
        let list: String =
            parameters.iter().map(|(name, path)| format!("; {name}={}\n", path.display())).collect();
        let file = folder.join(format!("{name}.sb"));
        if std::env::var_os("WHIMBREL_BLESS").is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&file, format!("{list}{text}")).unwrap();
        }
        assert_eq!(std::fs::read_to_string(&file).unwrap(), format!("{list}{text}"), "{name}");
    }
}

/// S-33.
#[test]
fn every_folder_above_a_protected_name_cannot_be_removed() {
    for (name, policy) in policies() {
        let FileLayer::Confined(rules) = &policy.files else { continue };
        let Profile { text, parameters } = profile(&policy, 17_911);
        let has_rule = |folder: &Path| {
            let parameter = parameters.iter().find(|(_, path)| path == folder).map(|(name, _)| name);
            parameter.is_some_and(|name| {
                text.contains(&format!("(deny file-write-unlink (literal (param \"{name}\")))"))
            })
        };
        for root in rules.allow_write.iter().chain([&policy.working_directory]) {
            for protected in rules.protected_names.iter().map(String::as_str).chain(GIT_NAMES) {
                let path = root.join(protected);
                for folder in path.ancestors().skip(1).take_while(|folder| folder.starts_with(root)) {
                    assert!(
                        spellings(folder).iter().all(|folder| has_rule(folder)),
                        "{name}: {}",
                        folder.display()
                    );
                }
            }
        }
    }
}

#[test]
fn paths_are_never_part_of_the_text() {
    let policy = Policy::new("/Users/u/\")(allow default)", "/scratch");
    let profile = profile(&policy, 1);
    assert!(!profile.text.contains("allow default"));
    assert!(profile.parameters.iter().any(|(_, path)| path == &policy.working_directory));
}

#[test]
fn denials_come_after_the_writes_they_limit() {
    let profile = profile(&policies()[1].1, 1);
    let last_allow = profile.text.rfind("(allow file-write* ").unwrap();
    let first_deny = profile.text.find("(deny file-write* (subpath").unwrap();
    assert!(last_allow < first_deny);
}

#[test]
fn globs_become_anchored_expressions() {
    let rows = [
        ("/a/*.pem", "^/a/[^/]*[.]pem(/.*)?$"),
        ("/a/**/k", "^/a/(.*/)?k(/.*)?$"),
        ("/a/{b,c}?", "^/a/(b|c)[^/](/.*)?$"),
        ("/a/\"^$", "^/a/.\\^[$](/.*)?$"),
        ("/a/{b", "^/a/(b)(/.*)?$"),
    ];
    for (pattern, expected) in rows {
        assert_eq!(glob_to_regex(pattern), expected, "{pattern}");
    }
}
