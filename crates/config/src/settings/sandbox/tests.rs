//! Who may widen what, and how layers are united.

use serde_json::json;

use super::*;
use crate::settings::document::SettingsDocument;
use crate::settings::layer::check_layer;
use crate::settings::sources::{LayerOrigin, LayerScope};
use crate::settings::trust::Trust;

fn merge(layers: &[(LayerSource, Value)]) -> SandboxSettings {
    let layers: Vec<SettingsLayer> = layers
        .iter()
        .map(|(source, sandbox)| {
            let scope = match source {
                Project => LayerScope::Project,
                _ => LayerScope::User,
            };
            let base = if *source == User { "/home/u/.claude" } else { "/etc/managed" };
            let origin = LayerOrigin { source: *source, scope, file: None, base: base.into() };
            let Value::Object(values) = json!({"sandbox": sandbox}) else { unreachable!() };
            let checked = check_layer(origin, SettingsDocument::from_values(values), Trust::Full);
            assert_eq!(checked.critical, []);
            checked.layer
        })
        .collect();
    SandboxSettings::merge(&layers, Path::new("/project"))
}

use LayerSource::{Flag, Local, Managed, Project, User};

/// S-27.
#[test]
fn projects_never_widen_the_sandbox() {
    let wide = json!({
        "enabled": false, "failIfUnavailable": false, "allowUnsandboxedCommands": true, "excludedCommands": ["*"],
        "enableWeakerNestedSandbox": true, "allowNestedUserNamespaces": true, "bwrapPath": "/evil",
        "network": {
            "allowedDomains": ["evil.test"], "strictAllowlist": false, "allowAllUnixSockets": true,
            "allowUnixSockets": ["/run/docker.sock"], "httpProxyPort": 1, "socksProxyPort": 2,
            "allowManagedDomainsOnly": true,
        },
        "filesystem": {"disabled": true, "allowWrite": ["/"], "allowRead": ["~/.ssh"]},
    });
    let strict = json!({
        "enabled": true, "allowUnsandboxedCommands": false, "network": {"strictAllowlist": true},
        "filesystem": {"denyRead": ["~/.ssh"]},
    });
    let expected = merge(&[(User, strict.clone())]);
    for source in [Project, Local] {
        let merged = merge(&[(User, strict.clone()), (source, wide.clone())]);
        assert_eq!(SandboxSettings { warnings: Vec::new(), ..merged }, expected, "{source:?}");
        let merged = merge(&[(source, wide.clone()), (Flag, strict.clone())]);
        assert_eq!(SandboxSettings { warnings: Vec::new(), ..merged }, expected, "{source:?}");
    }
    let [warning] = &merge(&[(User, strict), (Local, wide)]).warnings[..] else { panic!("one warning") };
    assert!(
        warning.contains("sandbox.enabled, ") && warning.contains("sandbox.filesystem.allowWrite"),
        "{warning}"
    );
}

#[test]
fn projects_may_narrow_the_sandbox() {
    let narrow = json!({
        "enabled": true, "failIfUnavailable": true, "allowUnsandboxedCommands": false,
        "network": {"deniedDomains": ["x.test"], "strictAllowlist": true},
        "filesystem": {"denyRead": ["./secret"], "denyWrite": ["conf"]},
        "credentials": {"files": [{"path": "~/.netrc", "mode": "deny"}], "envVars": [{"name": "TOKEN", "mode": "deny"}]},
    });
    let merged = merge(&[(User, json!({"failIfUnavailable": false})), (Project, narrow)]);
    assert!(merged.enabled && merged.fail_if_unavailable && !merged.allow_unsandboxed_commands);
    assert!(merged.network.strict_allowlist);
    let texts = |paths: &[SandboxPath]| paths.iter().map(|path| path.text.clone()).collect::<Vec<_>>();
    assert_eq!(texts(&merged.files.deny_read), ["/project/secret", "~/.netrc"]);
    assert_eq!(texts(&merged.files.deny_write), ["/project/conf"]);
    assert_eq!(merged.hidden_variables, ["TOKEN"]);
    assert_eq!(merged.network.denied_domains[0].text, "x.test");
    assert_eq!(merged.warnings, Vec::<String>::new());
}

#[test]
fn lists_are_united_and_paths_have_the_base_of_their_source() {
    let paths = |text: &str| json!({"filesystem": {"allowWrite": [text]}});
    let merged = merge(&[
        (User, paths("cache")),
        (Flag, paths("./out")),
        (Flag, json!({"filesystem": {"allowWrite": [{"path": "/a[1]", "literal": true}, "~/b/**"]}})),
    ]);
    let path = |text: &str, is_literal| (text.to_owned(), is_literal);
    let found = merged.files.allow_write.iter();
    assert_eq!(
        found.map(|path| (path.text.clone(), path.is_literal)).collect::<Vec<_>>(),
        [
            path("/home/u/.claude/cache", false),
            path("/project/out", false),
            path("/a[1]", true),
            path("~/b/**", false),
        ]
    );
}

#[test]
fn switches_take_the_strongest_source_and_administrators_limit() {
    let merged = merge(&[
        (User, json!({"enabled": true, "autoAllowBashIfSandboxed": true})),
        (Flag, json!({"enabled": true, "autoAllowBashIfSandboxed": false, "filesystem": {"disabled": true}})),
    ]);
    assert!(!merged.auto_allow_bash && merged.files.disabled);
    let merged = merge(&[
        (
            User,
            json!({"network": {"allowedDomains": ["u.test"]}, "filesystem": {"allowRead": ["/u"], "disabled": true}}),
        ),
        (
            Managed,
            json!({
                "bwrapPath": "/opt/bwrap", "network": {"allowManagedDomainsOnly": true, "allowedDomains": ["m.test"]},
                "filesystem": {"allowManagedReadPathsOnly": true},
            }),
        ),
    ]);
    let hosts: Vec<&str> = merged.network.allowed_domains.iter().map(|entry| entry.text.as_str()).collect();
    assert_eq!(hosts, ["m.test"]);
    assert!(merged.files.allow_read.is_empty() && !merged.files.disabled);
    assert_eq!(merged.bwrap_path.as_deref(), Some("/opt/bwrap"));
}

#[test]
fn lists_of_the_host_replace_a_proxy_of_weaker_sources() {
    let port = json!({"network": {"httpProxyPort": 8080}});
    let lists = json!({"network": {"allowedDomains": ["x.test"]}});
    assert_eq!(merge(&[(User, port.clone())]).network.http_proxy_port, Some(8080));
    assert_eq!(merge(&[(User, port.clone()), (Flag, lists)]).network.http_proxy_port, None);
    let both = json!({"network": {"allowedDomains": ["x.test"], "socksProxyPort": 1080}});
    let merged = merge(&[(User, port), (Flag, both)]).network;
    assert_eq!((merged.http_proxy_port, merged.socks_proxy_port), (Some(8080), Some(1080)));
}

#[test]
fn settings_that_cannot_be_carried_out_are_errors() {
    for (settings, named) in [
        (json!({"network": {"tlsTerminate": {"ca": "x"}}}), "sandbox.network.tlsTerminate"),
        (json!({"confine": ["mcp"]}), "sandbox.confine"),
    ] {
        let errors = merge(&[(Flag, settings)]).errors;
        assert!(errors.len() == 1 && errors[0].contains(named), "{errors:?}");
    }
}

#[test]
fn weakening_switches_warn() {
    let warn = |settings: Value| merge(&[(Flag, settings)]).warnings.len();
    assert_eq!(warn(json!({"enabled": true})), 0);
    assert_eq!(warn(json!({"enabled": true, "network": {"allowAllUnixSockets": true}})), 1);
    assert_eq!(warn(json!({"enabled": true, "allowNestedUserNamespaces": true})), 1);
    assert_eq!(warn(json!({"enabled": false, "allowNestedUserNamespaces": true})), 0);
}
