//! Allowed URLs and variables by authority.

use serde_json::json;

use super::*;
use crate::settings::document::SettingsDocument;
use crate::settings::layer::check_layer;
use crate::settings::trust::Trust;

fn layer(rank: Authority, value: &Value) -> SettingsLayer {
    let (source, scope, file) = match rank {
        Authority::Administrator => {
            (LayerSource::Managed, LayerScope::User, Some("/etc/managed.json".into()))
        }
        Authority::HostManaged => (LayerSource::Managed, LayerScope::User, None),
        Authority::User => (LayerSource::User, LayerScope::User, Some("/home/settings.json".into())),
        Authority::Project => {
            (LayerSource::Project, LayerScope::Project, Some("/project/settings.json".into()))
        }
    };
    let origin = LayerOrigin { source, scope, file, base: "/".into() };
    assert_eq!(Authority::from_origin(&origin), rank);
    check_layer(origin, SettingsDocument::from_values(value.as_object().unwrap().clone()), Trust::Untrusted)
        .layer
}

#[test]
fn star_in_the_host_does_not_match_beyond_it() {
    let rows = [
        ("https://hooks.example.com/*", "https://hooks.example.com/a/b?c", true),
        ("https://hooks.example.com/*", "https://HOOKS.example.com/", true),
        ("HTTPS://Hooks.example.com/*", "https://hooks.example.com/", true),
        ("https://hooks.example.com/*", "http://hooks.example.com/", false),
        ("https://hooks.example.com/*", "https://hooks.example.com.elsewhere.example/", false),
        ("https://hooks.example.com/*", "https://hooks.example.com@elsewhere.example/", false),
        ("https://*.example.com/*", "https://a.b.example.com/x", true),
        ("https://*.example.com/*", "https://elsewhere.example/x.example.com/", false),
        ("https://*.example.com/*", "https://elsewhere.example?.example.com/", false),
        ("http://localhost:*", "http://localhost:8080/hook", true),
        ("http://localhost", "http://localhost", true),
        ("http://localhost", "http://localhost/hook", false),
        ("http://127.0.0.1:80/a.c", "http://127.0.0.1/abc", false),
        ("*", "https://anywhere.example/", true),
        ("", "https://anywhere.example/", false),
    ];
    for (pattern, address, expected) in rows {
        let limits =
            HttpHookLimits::from_layers(&[layer(Authority::User, &json!({ALLOWED_URLS_KEY: [pattern]}))]);
        assert_eq!(limits.allows_url(Authority::User, address), expected, "{pattern} {address}");
    }
}

#[test]
fn list_applies_to_its_own_and_weaker_authorities() {
    use Authority::{Administrator, HostManaged, Project, User};
    let (here, there) = ("http://here.example/*", "http://there.example/*");
    let rows = [
        ("no list", vec![], [true; 4]),
        ("an empty list", vec![(Administrator, json!([]))], [false; 4]),
        ("the administrator's", vec![(Administrator, json!([there]))], [false; 4]),
        (
            "the user's list does not widen it",
            vec![(Administrator, json!([there])), (User, json!([here]))],
            [false; 4],
        ),
        (
            "the user's list does not limit stronger authorities",
            vec![(User, json!([there]))],
            [true, true, false, false],
        ),
        ("the host's managed one", vec![(HostManaged, json!([]))], [true, false, false, false]),
        ("a project's list limits only the project", vec![(Project, json!([]))], [true, true, true, false]),
        ("two of one rank", vec![(User, json!([there])), (User, json!([here]))], [true; 4]),
    ];
    for (name, lists, expected) in rows {
        let layers: Vec<SettingsLayer> = lists
            .iter()
            .map(|(rank, list)| layer(*rank, &json!({ALLOWED_URLS_KEY: list, ALLOWED_ENV_VARS_KEY: list})))
            .collect();
        let limits = HttpHookLimits::from_layers(&layers);
        let ranks = [Administrator, HostManaged, User, Project];
        assert_eq!(ranks.map(|rank| limits.allows_url(rank, "http://here.example/hook")), expected, "{name}");
        let passes = |rank| !limits.allowed_variables(rank, &[here.to_owned()]).is_empty();
        assert_eq!(ranks.map(passes), expected, "variables: {name}");
    }
}
