//! A session in a SQLite store, through the SDK.

use serde_json::json;
use whimbrel::store::SqliteStore;
use whimbrel::{Agent, Scripted};

#[tokio::test]
async fn session_continues_from_a_reopened_database() {
    let dir = tempfile::tempdir().unwrap();
    let database = dir.path().join("sessions.db");
    let agent = |replies: serde_json::Value| {
        Agent::new()
            .cwd(dir.path())
            .session_store(SqliteStore::open(&database).unwrap())
            .script(Scripted::replies(replies).unwrap())
    };
    let first = whimbrel::query("I am Ann.", &agent(json!(["Hello, Ann."]))).await.unwrap();
    let expecting_name = json!([{"expect": "I am Ann", "content": ["You are Ann."]}]);
    let resumed = agent(expecting_name).with(|options| options.continue_conversation = true);
    let second = whimbrel::query("Who am I?", &resumed).await.unwrap();
    assert_eq!(second.text(), "You are Ann.");
    assert_eq!(second.session_id(), first.session_id());
    let listed = resumed.sessions().unwrap().list().await.unwrap();
    assert_eq!((listed.len(), listed[0].summary.as_str()), (1, "Who am I?"));
}
