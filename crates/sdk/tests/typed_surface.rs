//! Options, hooks and permissions as typed builders.
#![cfg(feature = "in-process")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use whimbrel::store::MemoryStore;
use whimbrel::wire::permission::{Destination, PermissionMode, PermissionUpdate};
use whimbrel::{
    Agent, Hook, HookAnswer, Isolation, MemoryScope, OpenError, PermissionResult, Scripted, Session,
    Subagent, query,
};

fn agent(replies: Value) -> (Agent, Arc<Scripted>) {
    let script = Arc::new(Scripted::replies(replies).unwrap());
    let agent = Agent::new().cwd(std::env::temp_dir()).persist_session(false).script(Arc::clone(&script));
    (agent, script)
}

fn bash(command: &str) -> Value {
    json!([{"type": "tool_use", "name": "Bash", "input": {"command": command}}])
}

fn last_request(script: &Scripted) -> String {
    script.requests().last().map(ToString::to_string).unwrap_or_default()
}

#[tokio::test]
async fn typed_hook_denies_a_call() {
    let (agent, script) = agent(json!([bash("curl x"), "Not then."]));
    let hook = Hook::pre_tool_use(|call, context| async move {
        assert!(!context.session_id().is_empty());
        assert_eq!(call.tool_input["command"], "curl x");
        HookAnswer::deny("no network")
    });
    let answer = query("go", &agent.hook(hook)).await.unwrap();
    assert_eq!(answer.denials().len(), 1);
    assert!(last_request(&script).contains("no network"));
}

#[tokio::test]
async fn typed_hook_changes_input_and_output() {
    let (agent, script) = agent(json!([bash("echo one"), "Done."]));
    let change = Hook::pre_tool_use(|_, _| async {
        let input = json!({"command": "echo two"});
        HookAnswer::with_input(input.as_object().cloned().unwrap_or_default())
    });
    let replace = Hook::post_tool_use(|call, _| async move {
        assert_eq!(call.tool_input["command"], "echo two");
        HookAnswer::context("the moon is full")
    });
    query("go", &agent.permission_mode(PermissionMode::BypassPermissions).hook(change).hook(replace))
        .await
        .unwrap();
    let request = last_request(&script);
    assert!(request.contains("two") && request.contains("the moon is full"), "{request}");
}

#[tokio::test]
async fn typed_hook_without_an_opinion_changes_nothing() {
    let seen = Arc::<Mutex<Vec<String>>>::default();
    let seen_by_hook = Arc::clone(&seen);
    let (agent, _) = agent(json!(["Hello."]));
    let hook = Hook::user_prompt_submit(move |prompt, _| {
        seen_by_hook.lock().unwrap().push(prompt.prompt);
        async { HookAnswer::none() }
    });
    assert_eq!(query("hi", &agent.hook(hook)).await.unwrap().text(), "Hello.");
    assert_eq!(*seen.lock().unwrap(), ["hi"]);
}

#[tokio::test]
async fn permission_changes_the_input_and_the_rules() {
    let (agent, script) = agent(json!([bash("touch /nowhere/a"), bash("echo three"), "Done."]));
    let asked = Arc::<Mutex<Vec<String>>>::default();
    let asked_by_callback = Arc::clone(&asked);
    #[derive(serde::Deserialize)]
    struct Bash {
        command: String,
    }
    let agent = agent.can_use_tool(move |request| {
        let command = request.input_as::<Bash>().unwrap().command;
        asked_by_callback.lock().unwrap().push(command);
        async {
            let input = json!({"command": "echo changed"});
            let accept = PermissionUpdate::SetMode {
                mode: PermissionMode::BypassPermissions,
                destination: Destination::Session,
            };
            PermissionResult::allow()
                .with_input(input.as_object().cloned().unwrap_or_default())
                .with_updates([accept])
        }
    });
    let agent = agent.with(|options| options.allow_dangerously_skip_permissions = true);
    query("go", &agent).await.unwrap();
    assert_eq!(asked.lock().unwrap().len(), 1, "the mode was changed");
    assert!(last_request(&script).contains("changed"));
}

#[tokio::test]
async fn denial_can_end_the_turn() {
    let (agent, script) = agent(json!([bash("touch /nowhere/a"), "unreached"]));
    let agent = agent.can_use_tool(|_| async { PermissionResult::deny("no").and_interrupt() });
    assert!(query("go", &agent).await.is_err());
    assert_eq!(script.requests().len(), 1);
}

#[test]
fn subagent_is_a_definition() {
    let subagent = Subagent::new("when", "prompt")
        .tools(["Read"])
        .disallowed_tools(["Bash"])
        .model("haiku")
        .max_turns(3)
        .background()
        .isolation(Isolation::Worktree)
        .memory(MemoryScope::Project);
    let agent = Agent::new().subagent("scout", subagent);
    assert_eq!(
        serde_json::to_value(&agent.options().agents["scout"]).unwrap(),
        json!({
            "description": "when", "prompt": "prompt", "tools": ["Read"], "disallowedTools": ["Bash"], "model": "haiku",
            "maxTurns": 3, "background": true, "isolation": "worktree", "memory": "project",
        })
    );
}

#[tokio::test]
async fn subagent_has_its_prompt_and_tools() {
    let start = json!([{"type": "tool_use", "name": "Agent",
        "input": {"subagent_type": "scout", "description": "look", "prompt": "Look around."}}]);
    let (agent, script) = agent(json!([start, "Nothing there.", "Done."]));
    let agent = agent.subagent("scout", Subagent::new("Looks around", "You are the scout.").tools(["Read"]));
    query("go", &agent).await.unwrap();
    let requests: Vec<String> = script.requests().iter().map(ToString::to_string).collect();
    assert!(requests.iter().any(|request| request.contains("You are the scout.")), "{requests:?}");
}

#[tokio::test]
async fn unknown_tool_is_an_error_of_open() {
    let (agent, _) = agent(json!([]));
    let error = Session::open(&agent.tools(["Read", "Raed"])).await.unwrap_err();
    let OpenError::InvalidOption { option, reason } = error else { panic!("{error}") };
    assert_eq!(option, "tools");
    assert!(reason.contains("Raed") && reason.contains("Read"), "{reason}");
}

#[tokio::test]
async fn team_tools_are_known_and_offered_with_teams() {
    let (agent, script) = agent(json!(["Hello."]));
    query("hi", &agent.teams(true)).await.unwrap();
    assert!(last_request(&script).contains("SendMessage"));
}

#[tokio::test]
async fn session_is_created_then_resumed() {
    let (agent, script) = agent(json!(["one", "two"]));
    let agent = agent.persist_session(true).session_store(MemoryStore::default());
    let id = "67e55044-10b1-426f-9247-bb680e5fe0c8";
    for expected in ["one", "two"] {
        let agent = agent.clone().resume_or_create(id).await.unwrap();
        let answer = query("next", &agent).await.unwrap();
        assert_eq!((answer.text(), answer.session_id()), (expected, id));
    }
    assert!(last_request(&script).contains("one"), "the second run has the first one's history");
}

#[tokio::test]
async fn path_that_is_not_utf8_names_its_option() {
    use std::os::unix::ffi::OsStrExt;
    let odd = std::path::Path::new(std::ffi::OsStr::from_bytes(b"/t\xff"));
    for (name, agent) in [("add_dir", Agent::new().add_dir(odd)), ("plugin", Agent::new().plugin(odd))] {
        let error = Session::open(&agent).await.unwrap_err();
        assert!(matches!(error, OpenError::InvalidOption { option, .. } if option == name));
    }
}
