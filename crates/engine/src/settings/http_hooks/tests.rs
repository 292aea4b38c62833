//! Which addresses and variables pass, and by whose word.

use serde_json::json;

use super::*;
use crate::settings::layer::judge;
use crate::settings::read::Document;
use crate::settings::trust::Trust;

fn layer(rank: Rank, value: &Value) -> Layer {
    let (source, scope, file) = match rank {
        Rank::Administrator => (Source::Managed, Scope::Person, Some("/etc/managed.json".into())),
        Rank::Steward => (Source::Managed, Scope::Person, None),
        Rank::Person => (Source::User, Scope::Person, Some("/home/settings.json".into())),
        Rank::Project => (Source::Project, Scope::Project, Some("/project/settings.json".into())),
    };
    let origin = Origin { source, scope, file, base: "/".into() };
    assert_eq!(Rank::of(&origin), rank);
    judge(origin, Document::of(value.as_object().unwrap().clone()), Trust::Unknown).layer
}

#[test]
fn a_star_in_the_name_of_a_host_stays_there() {
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
        let limits = HttpLimits::of(&[layer(Rank::Person, &json!({ADDRESSES: [pattern]}))]);
        assert_eq!(limits.admit(Rank::Person, address), expected, "{pattern} {address}");
    }
}

#[test]
fn a_list_counts_for_its_own_rank_and_those_below() {
    use Rank::{Administrator, Person, Project, Steward};
    let (here, there) = ("http://here.example/*", "http://there.example/*");
    let rows = [
        ("no list", vec![], [true; 4]),
        ("an empty list", vec![(Administrator, json!([]))], [false; 4]),
        ("the administrator's", vec![(Administrator, json!([there]))], [false; 4]),
        (
            "the person's does not widen it",
            vec![(Administrator, json!([there])), (Person, json!([here]))],
            [false; 4],
        ),
        ("nor bind those above", vec![(Person, json!([there]))], [true, true, false, false]),
        ("the host's managed one", vec![(Steward, json!([]))], [true, false, false, false]),
        ("a project binds only itself", vec![(Project, json!([]))], [true, true, true, false]),
        ("two of one rank", vec![(Person, json!([there])), (Person, json!([here]))], [true; 4]),
    ];
    for (name, lists, expected) in rows {
        let layers: Vec<Layer> = lists
            .iter()
            .map(|(rank, list)| layer(*rank, &json!({ADDRESSES: list, VARIABLES: list})))
            .collect();
        let limits = HttpLimits::of(&layers);
        let ranks = [Administrator, Steward, Person, Project];
        assert_eq!(ranks.map(|rank| limits.admit(rank, "http://here.example/hook")), expected, "{name}");
        let passes = |rank| !limits.variables(rank, &[here.to_owned()]).is_empty();
        assert_eq!(ranks.map(passes), expected, "variables: {name}");
    }
}
