use serde_json::json;
use tempfile::TempDir;

use super::item::TaskItemStatus::{Completed, InProgress, Pending};
use super::*;

fn new_item(subject: &str) -> NewTaskItem {
    NewTaskItem { subject: subject.into(), ..NewTaskItem::default() }
}

fn list_with(subjects: &[&str]) -> TaskListState {
    let mut state = TaskListState::default();
    subjects.iter().for_each(|subject| drop(state.add(new_item(subject))));
    state
}

#[test]
fn dependencies_are_symmetric_and_never_circular() {
    let mut state = list_with(&["a", "b", "c"]);
    let change =
        TaskItemUpdate { add_blocked_by: vec!["#1".into(), "1".into()], ..TaskItemUpdate::default() };
    assert_eq!(state.update("2", change).unwrap().fields, ["blockedBy"]);
    assert_eq!(state.get("1").unwrap().blocks, ["2"]);
    state.update("2", TaskItemUpdate { add_blocks: vec!["3".into()], ..TaskItemUpdate::default() }).unwrap();
    assert_eq!(state.get("3").unwrap().blocked_by, ["2"]);
    for id in ["1", "3"] {
        let change = TaskItemUpdate { add_blocked_by: vec!["3".into()], ..TaskItemUpdate::default() };
        assert_eq!(state.update(id, change), Err(TaskRuleError::Cycle(id.into())));
    }
    state.remove("2").unwrap();
    assert!(state.items().all(|item| item.blocks.is_empty() && item.blocked_by.is_empty()));
    assert_eq!(state.add(new_item("d")).id, "4", "ids are not reused");
}

#[test]
fn an_update_is_applied_completely_or_not_at_all() {
    let mut state = list_with(&["a"]);
    let before = state.clone();
    let change = TaskItemUpdate {
        subject: Some("x".into()),
        add_blocks: vec!["9".into()],
        ..TaskItemUpdate::default()
    };
    assert_eq!(state.update("1", change), Err(TaskRuleError::UnknownTask("9".into())));
    assert_eq!(state, before);
    let metadata = json!({"k": 1, "gone": null}).as_object().unwrap().clone();
    let change = TaskItemUpdate { metadata, status: Some(Completed), ..TaskItemUpdate::default() };
    let changed = state.update("#1", change).unwrap();
    assert_eq!((changed.fields, changed.previous_status), (vec!["status", "metadata"], Pending));
    assert_eq!(changed.item.metadata["k"], 1);
}

#[test]
fn a_task_is_claimed_once_and_only_if_unblocked() {
    let mut state = list_with(&["a", "b"]);
    state
        .update("2", TaskItemUpdate { add_blocked_by: vec!["1".into()], ..TaskItemUpdate::default() })
        .unwrap();
    assert_eq!(
        state.claim("2", "ann"),
        Err(TaskRuleError::Blocked { id: "2".into(), blockers: vec!["1".into()] })
    );
    assert_eq!(state.claim("1", "ann").unwrap().status, InProgress);
    assert_eq!(
        state.claim("1", "bob"),
        Err(TaskRuleError::OwnedByOther { id: "1".into(), owner: "ann".into() })
    );
    assert!(state.claim("1", "ann").is_ok(), "the owner can claim it again");
    state.update("1", TaskItemUpdate { status: Some(Completed), ..TaskItemUpdate::default() }).unwrap();
    assert_eq!(state.claim("1", "bob"), Err(TaskRuleError::AlreadyCompleted("1".into())));
    assert!(state.claim("2", "bob").is_ok());
}

#[tokio::test]
async fn one_of_many_agents_claims_a_task() {
    let dir = TempDir::new().unwrap();
    for list in [TaskList::default(), TaskList::shared(dir.path(), "crew")] {
        list.add(new_item("a")).await.unwrap();
        let claims = (0..8).map(|nth| {
            // On disk, each claim could come from another process.
            let list = match &list.0.session_store {
                Store::Memory(_) => list.clone(),
                Store::Directory(_) => TaskList::shared(dir.path(), "crew"),
            };
            async move { list.claim("1", &format!("mate {nth}")).await }
        });
        let winners = futures::future::join_all(claims).await.into_iter().filter(Result::is_ok).count();
        assert_eq!(winners, 1);
    }
}

#[tokio::test]
async fn a_disk_list_is_created_with_the_first_task() {
    let dir = TempDir::new().unwrap();
    let (first, second) = (TaskList::shared(dir.path(), "a/../b"), TaskList::shared(dir.path(), "a/../b"));
    assert_eq!(first.items().await.unwrap(), []);
    assert!(!dir.path().join("tasks").exists());
    let item = first.add(new_item("one")).await.unwrap();
    assert_eq!(second.get("1").await.unwrap(), Some(item));
    assert!(dir.path().join("tasks/a----b/1.json").exists());
    second.remove("1").await.unwrap();
    assert_eq!(first.add(new_item("two")).await.unwrap().id, "2");
    std::fs::write(dir.path().join("tasks/a----b/3.json"), "{broken").unwrap();
    assert_eq!(first.add(new_item("four")).await.unwrap().id, "4", "an unreadable file is not overwritten");
    assert_eq!(first.items().await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_team_has_its_own_list_while_led() {
    let dir = TempDir::new().unwrap();
    let lead = TaskList::for_session(dir.path(), "s1");
    let teammate = lead.clone();
    lead.add(new_item("before")).await.unwrap();
    assert!(lead.switch_to_team("crew"));
    assert_eq!(teammate.items().await.unwrap(), []);
    assert_eq!(teammate.add(new_item("ours")).await.unwrap().id, "1");
    assert!(dir.path().join("tasks/crew/1.json").exists());
    lead.switch_to_session();
    assert_eq!(teammate.get("1").await.unwrap().unwrap().subject, "before");
    let shared = TaskList::shared(dir.path(), "all");
    assert!(!shared.switch_to_team("crew"), "a shared list is not replaced by a team's");
}
