//! What every store must do.

use serde_json::json;

use super::*;

fn entry(name: &str) -> RawJson {
    RawJson::of(&json!({"type": "x", "uuid": name})).unwrap()
}

fn key() -> StoreKey {
    StoreKey::session("proj", "sess")
}

/// A fresh store of each kind, with the folder that one of them needs.
fn stores() -> Vec<(&'static str, Box<dyn SessionStore>, Option<tempfile::TempDir>)> {
    let folder = tempfile::tempdir().unwrap();
    let file = FileStore::new(folder.path().join("projects"));
    vec![("memory", Box::new(MemoryStore::default()), None), ("file", Box::new(file), Some(folder))]
}

#[tokio::test]
async fn lines_come_back_in_the_order_in_which_they_came() {
    for (name, store, _folder) in stores() {
        assert_eq!(store.load(&key()).await.unwrap(), None, "{name}");
        store.append(&key(), &[entry("b"), entry("a")]).await.unwrap();
        store.append(&key(), &[]).await.unwrap();
        store.append(&key(), &[entry("c")]).await.unwrap();
        let expected = Some(vec![entry("b"), entry("a"), entry("c")]);
        assert_eq!(store.load(&key()).await.unwrap(), expected, "{name}");
        assert_eq!(store.load(&key().below("nope")).await.unwrap(), None, "{name}");
        let empty = StoreKey::session("proj", "empty");
        store.append(&empty, &[]).await.unwrap();
        assert_eq!(store.load(&empty).await.unwrap(), None, "{name}");
    }
}

#[tokio::test]
async fn projects_sessions_and_what_lies_below_are_kept_apart() {
    for (name, store, _folder) in stores() {
        let other = StoreKey::session("other", "sess");
        for (key, line) in [(key(), "m"), (key().below("subagents/agent-1"), "s"), (other.clone(), "o")] {
            store.append(&key, &[entry(line)]).await.unwrap();
        }
        assert_eq!(store.load(&key()).await.unwrap(), Some(vec![entry("m")]), "{name}");
        assert_eq!(store.load(&other).await.unwrap(), Some(vec![entry("o")]), "{name}");
        let listed = store.list("proj").await.unwrap();
        assert_eq!(
            listed.iter().map(|stored| stored.session.as_str()).collect::<Vec<_>>(),
            ["sess"],
            "{name}"
        );
        assert!(listed[0].modified_ms > 1_000_000_000_000, "{name}: milliseconds");
        assert_eq!(store.list("never").await.unwrap(), [], "{name}");
        assert_eq!(store.subkeys("proj", "sess").await.unwrap(), ["subagents/agent-1"], "{name}");
        assert_eq!(store.subkeys("other", "sess").await.unwrap(), Vec::<String>::new(), "{name}");
    }
}

#[tokio::test]
async fn a_session_goes_with_all_below_it_and_what_lies_below_goes_alone() {
    for (name, store, _folder) in stores() {
        let (one, two, near) = (
            key().below("subagents/agent-1"),
            key().below("subagents/agent-2"),
            StoreKey::session("proj", "sess2"),
        );
        for key in [&key(), &one, &two, &near] {
            store.append(key, &[entry("x")]).await.unwrap();
        }
        store.delete(&one).await.unwrap();
        assert_eq!(store.subkeys("proj", "sess").await.unwrap(), ["subagents/agent-2"], "{name}");
        assert!(store.load(&key()).await.unwrap().is_some(), "{name}");
        store.delete(&key()).await.unwrap();
        store.delete(&key()).await.unwrap();
        for key in [&key(), &two] {
            assert_eq!(store.load(key).await.unwrap(), None, "{name}");
        }
        assert!(store.load(&near).await.unwrap().is_some(), "{name}");
        assert_eq!(store.list("proj").await.unwrap().len(), 1, "{name}");
    }
}

/// What the only session of a project is about.
async fn about(store: &dyn SessionStore) -> Summary {
    store.summaries("proj").await.unwrap().remove(0).summary
}

#[tokio::test]
async fn a_list_says_what_each_session_is_about() {
    let line = |value: serde_json::Value| RawJson::of(&value).unwrap();
    for (name, store, _folder) in stores() {
        let prompt =
            line(json!({"type": "user", "cwd": "/w", "timestamp": "t1", "message": {"content": "Do\nthis"}}));
        store.append(&key(), &[entry("x"), prompt]).await.unwrap();
        assert_eq!(about(store.as_ref()).await.text(), Some("Do this"), "{name}");
        // More than the ends of a file show.
        let filler: Vec<RawJson> = (0..3_000).map(|_| entry("some line of a long transcript")).collect();
        store.append(&key(), &filler).await.unwrap();
        store.append(&key(), &[line(json!({"type": "custom-title", "customTitle": "Mine"}))]).await.unwrap();
        store.append(&key(), &[line(json!({"type": "tag", "tag": "blue"}))]).await.unwrap();
        store
            .append(&key().below("subagents/agent-1"), &[line(json!({"type": "tag", "tag": "red"}))])
            .await
            .unwrap();
        let summary = about(store.as_ref()).await;
        let got =
            (summary.text(), summary.tag.as_deref(), summary.cwd.as_deref(), summary.created_at.as_deref());
        assert_eq!(got, (Some("Mine"), Some("blue"), Some("/w"), Some("t1")), "{name}");
    }
}

#[tokio::test]
async fn no_key_leads_out_of_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let store = FileStore::new(folder.path().join("projects"));
    let keys = [
        StoreKey::session("..", "s"),
        StoreKey::session("p", "../s"),
        StoreKey::session("p", ""),
        StoreKey::session("p", "s").below("../../x"),
        StoreKey::session("p", "s").below("/etc/x"),
        StoreKey::session("p", "s").below(""),
    ];
    for key in keys {
        assert!(matches!(store.append(&key, &[entry("x")]).await, Err(StoreError::BadKey(_))), "{key:?}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn an_entry_of_several_lines_stays_one() {
    let folder = tempfile::tempdir().unwrap();
    let store = FileStore::new(folder.path());
    let entry = RawJson::parse("{\n  \"type\": \"x\"\n}").unwrap();
    store.append(&key(), std::slice::from_ref(&entry)).await.unwrap();
    assert_eq!(store.load(&key()).await.unwrap(), Some(vec![entry]));
}
