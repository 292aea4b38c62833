//! Sessions in a store instead of on disk: written, resumed, forked, and with a failing store.
#![cfg(feature = "in-process")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;
use whimbrel::store::{
    FileStore, ForkOptions, ImportedMessage, ListedSession, MemoryStore, SessionLock, SessionStore,
    SharedStore, StoreError, StoreKey, StoredSummary,
};
use whimbrel::wire::control::{RenameSession, RewindScope};
use whimbrel::wire::message::{Outcome, User};
use whimbrel::wire::permission::PermissionResult;
use whimbrel::wire::system::SystemEvent;
use whimbrel::wire::{RawJson, Role};
use whimbrel::{
    Agent, Environment, Error, Frame, OpenError, Scripted, Session, ToolServer, Transport, TurnError, query,
    tool_with_state,
};

/// A store, a working directory, and a home in which nothing may appear.
struct Fixture {
    root: tempfile::TempDir,
    store: Arc<MemoryStore>,
}

impl Fixture {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for name in ["home", "work", "tmp"] {
            std::fs::create_dir(root.path().join(name)).unwrap();
        }
        Self { root, store: Arc::default() }
    }

    fn dir(&self, name: &str) -> std::path::PathBuf {
        self.root.path().join(name)
    }

    fn agent(&self, replies: Value) -> Agent {
        self.agent_with(Arc::clone(&self.store), replies)
    }

    fn agent_with(&self, store: impl Into<SharedStore>, replies: Value) -> Agent {
        let home = |name: &str| self.dir(name).display().to_string();
        let environment: Environment =
            [("HOME", home("home")), ("TMPDIR", home("tmp")), ("PATH", std::env::var("PATH").unwrap())]
                .into_iter()
                .collect();
        Agent::new()
            .environment(environment)
            .cwd(self.dir("work"))
            .allowed_tools(["Bash", "Agent"])
            .session_store(store)
            .script(Scripted::replies(replies).unwrap())
    }

    fn project_key(&self) -> String {
        let path = self.dir("work").canonicalize().unwrap();
        path.to_str().unwrap().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
    }

    /// Returns the kinds of all entries of a transcript.
    async fn entry_kinds(&self, session: &str, below: Option<&str>) -> Vec<String> {
        let own = StoreKey::session(self.project_key(), session);
        let key = below.map_or_else(|| own.clone(), |below| own.with_subpath(below));
        let lines = self.store.load(&key).await.unwrap().unwrap_or_default();
        lines.iter().map(entry_kind).filter(|kind| kind != "brief").collect()
    }
}

/// Kind of an entry: its type, and that of its first block.
fn entry_kind(line: &RawJson) -> String {
    let line: Value = line.decode().unwrap();
    let block = line["message"]["content"][0]["type"].as_str();
    let name = line["type"].as_str().unwrap();
    block.map_or_else(|| name.to_owned(), |block| format!("{name} {block}"))
}

async fn run_prompt(agent: &Agent, prompt: &str) -> (String, String) {
    let answer = query(prompt.to_owned(), agent).await.unwrap();
    (answer.session_id().to_owned(), answer.into_text())
}

fn bash_call(command: &str) -> Value {
    json!([{"type": "tool_use", "name": "Bash", "input": {"command": command}}])
}

fn is_empty(dir: &Path) -> bool {
    std::fs::read_dir(dir).unwrap().next().is_none()
}

#[tokio::test]
async fn session_is_in_its_store_and_not_on_disk() {
    let fixture = Fixture::new();
    let errand = json!([{"type": "tool_use", "name": "Agent",
        "input": {"description": "look", "prompt": "Look.", "subagent_type": "general-purpose"}}]);
    let agent = fixture.agent(json!([bash_call("echo hi"), errand, "I looked.", "Done."]));
    let (session, reply) = run_prompt(&agent, "Go.").await;
    assert_eq!(reply, "Done.");
    let expected = [
        "user",
        "assistant tool_use",
        "tool-start",
        "user tool_result",
        "assistant tool_use",
        // The call of the Agent tool, and the agent that it started.
        "tool-start",
        "tool-start",
        "user tool_result",
        "assistant text",
        "last-prompt",
        "cost-state",
    ];
    assert_eq!(fixture.entry_kinds(&session, None).await, expected);
    let below = fixture.store.subkeys(&fixture.project_key(), &session).await.unwrap();
    assert_eq!(below.len(), 1);
    assert!(below[0].starts_with("subagents/agent-"), "{below:?}");
    assert_eq!(
        fixture.entry_kinds(&session, Some(&below[0])).await,
        ["user", "agent_metadata", "assistant text"]
    );
    for dir in ["home", "tmp"] {
        assert!(is_empty(&fixture.dir(dir)), "{dir}");
    }
}

#[tokio::test]
async fn agent_of_an_earlier_run_resumes_from_the_store() {
    let fixture = Fixture::new();
    let errand = |input: Value| json!([{"type": "tool_use", "name": "Agent", "input": input}]);
    let first = errand(json!({"description": "keep", "prompt": "Remember TULIP.", "name": "scout",
        "subagent_type": "general-purpose"}));
    let (session, _) = run_prompt(&fixture.agent(json!([first, "I will.", "Done."])), "Go.").await;
    let below = fixture.store.subkeys(&fixture.project_key(), &session).await.unwrap().remove(0);
    let id = below.strip_prefix("subagents/agent-").unwrap();
    for who in [id, "scout"] {
        let again = errand(json!({"description": "ask", "prompt": "Which flower?", "resume": who,
            "subagent_type": "general-purpose"}));
        let knows = json!({"expect": "Remember TULIP", "content": ["Flower: TULIP."]});
        let notes = json!({"expect": "Flower: TULIP.", "content": ["It was a tulip."]});
        let agent = fixture.agent(json!([again, knows, notes])).resume(&session);
        assert_eq!(run_prompt(&agent, "Ask it.").await, (session.clone(), "It was a tulip.".into()), "{who}");
    }
    let kinds = fixture.entry_kinds(&session, Some(&below)).await;
    assert_eq!(kinds.iter().filter(|kind| *kind == "assistant text").count(), 3, "{kinds:?}");
}

#[tokio::test]
async fn session_resumes_by_id_as_latest_and_as_fork() {
    let fixture = Fixture::new();
    let (first, _) = run_prompt(&fixture.agent(json!(["Hello, Ann."])), "I am Ann.").await;
    let knows = json!([{"expect": "I am Ann", "content": ["Ann."]}]);
    let resumed = fixture.agent(knows.clone()).resume(&first);
    assert_eq!(run_prompt(&resumed, "Who am I?").await, (first.clone(), "Ann.".into()));
    let last = fixture.agent(knows.clone()).with(|options| options.continue_conversation = true);
    assert_eq!(run_prompt(&last, "And now?").await.0, first);
    let before = fixture.entry_kinds(&first, None).await;
    let forked = fixture.agent(knows.clone()).resume(&first).with(|options| options.fork_session = true);
    let (copy, reply) = run_prompt(&forked, "And here?").await;
    assert_eq!((copy != first, reply.as_str()), (true, "Ann."));
    assert_eq!(fixture.entry_kinds(&first, None).await, before, "the copied session stays as it is");
    let reply = |kinds: Vec<String>| {
        kinds.into_iter().filter(|kind| kind.starts_with("user") || kind.starts_with("assistant")).count()
    };
    assert_eq!(reply(fixture.entry_kinds(&copy, None).await), reply(before.clone()) + 2);
    let unread = fixture.agent(knows).resume(&first).persist_session(false);
    assert_eq!(run_prompt(&unread, "Just so.").await.1, "Ann.");
    assert_eq!(fixture.entry_kinds(&first, None).await, before, "and one that is not kept adds nothing");
    assert!(is_empty(&fixture.dir("home")));
}

#[tokio::test]
async fn missing_or_existing_session_is_rejected() {
    let fixture = Fixture::new();
    let (first, _) = run_prompt(&fixture.agent(json!(["Hello."])), "Hi.").await;
    let unknown = "aaaaaaaa-2222-4333-8444-555555555555";
    let refused = Session::open(&fixture.agent(json!(["x"])).resume(unknown)).await;
    assert!(
        matches!(&refused, Err(OpenError::NoSuchSession { session }) if session == unknown),
        "{refused:?}"
    );
    let refused = query("x", &fixture.agent(json!(["x"])).session_id(&first)).await;
    let Err(TurnError::Session(Error::Open(OpenError::SessionExists { session }))) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(session, first);
    let process = fixture.agent(json!(["x"])).transport(Transport::process("whimbrel"));
    let refused = Session::open(&process).await;
    assert!(
        matches!(&refused, Err(OpenError::Configuration(text)) if text.contains("session_store")),
        "{refused:?}"
    );
}

#[tokio::test]
async fn stored_sessions_can_be_listed_searched_changed_and_deleted() {
    let fixture = Fixture::new();
    let (session, _) = run_prompt(&fixture.agent(json!(["Two curlews."])), "How many birds?").await;
    let sessions = fixture.agent(json!([])).sessions().unwrap();
    let summaries = async || -> Vec<String> {
        sessions.list().await.unwrap().into_iter().map(|listed| listed.summary).collect()
    };
    assert_eq!(summaries().await, ["How many birds?"]);
    let messages = sessions.messages(&session).await.unwrap();
    assert_eq!(
        messages.iter().map(|message| message.kind.as_str()).collect::<Vec<_>>(),
        ["user", "assistant"]
    );
    let found = sessions.search("CURLEWS", 3).await.unwrap();
    assert_eq!((found.len(), found[0].hits[0].text.as_str()), (1, "Two curlews."));
    assert_eq!(sessions.search("godwits", 3).await.unwrap(), []);
    let copy = sessions.fork(&session, ForkOptions::default()).await.unwrap();
    assert_eq!(summaries().await[0], "How many birds? (fork)");
    let at = Some(messages[0].uuid.clone());
    let part = sessions.fork(&session, ForkOptions { at, title: Some("Part".into()) }).await.unwrap();
    assert_eq!(sessions.messages(&part).await.unwrap().len(), 1);
    sessions.rename(&session, "Waders").await.unwrap();
    sessions.tag(&session, Some("birds")).await.unwrap();
    let listed = sessions.list().await.unwrap();
    let named = listed.iter().find(|listed| listed.session_id == session).unwrap();
    assert_eq!((named.summary.as_str(), named.tag.as_deref()), ("Waders", Some("birds")));
    for dropped in [&copy, &part, &session] {
        sessions.delete(dropped).await.unwrap();
        assert!(sessions.rename(dropped, "late").await.is_err());
    }
    assert_eq!(summaries().await, [""; 0]);
}

#[tokio::test]
async fn sessions_on_disk_have_the_same_interface() {
    let fixture = Fixture::new();
    let home = fixture.dir("home").display().to_string();
    let environment: Environment = [("HOME", home)].into_iter().collect();
    let agent = Agent::new()
        .environment(environment)
        .cwd(fixture.dir("work"))
        .script(Scripted::replies(json!(["Two curlews."])).unwrap());
    let (session, _) = run_prompt(&agent, "How many birds?").await;
    let sessions = agent.sessions().unwrap();
    assert_eq!(sessions.list().await.unwrap()[0].session_id, session);
    assert_eq!(sessions.messages("last").await.unwrap().len(), 2);
    assert!(sessions.lines(&session[..8]).await.unwrap().len() >= 2);
    assert_eq!(sessions.search("curlews", 3).await.unwrap()[0].session, session);
    let copy = sessions.fork(&session, ForkOptions::default()).await.unwrap();
    let resumed = agent
        .clone()
        .resume(&copy)
        .script(Scripted::replies(json!([{"expect": "How many birds", "content": ["Still two."]}])).unwrap());
    assert_eq!(run_prompt(&resumed, "Now?").await, (copy.clone(), "Still two.".into()));
    let titles: Vec<String> =
        sessions.list().await.unwrap().into_iter().map(|listed| listed.summary).collect();
    assert_eq!(titles, ["How many birds? (fork)", "How many birds?"]);
    sessions.delete(&copy).await.unwrap();
    assert_eq!(sessions.list().await.unwrap().len(), 1);
}

/// A store that reports its entries and fails on demand.
#[derive(Default)]
struct WatchedStore {
    inner: MemoryStore,
    is_failing: AtomicBool,
    rejected_appends: AtomicUsize,
    /// Called with the kind of each entry before it is stored.
    observer: Mutex<Option<EntryObserver>>,
}

type EntryObserver = Box<dyn FnMut(&str) + Send>;

#[async_trait]
impl SessionStore for WatchedStore {
    async fn append(&self, key: &StoreKey, entries: &[RawJson]) -> Result<(), StoreError> {
        if self.is_failing.load(Ordering::Relaxed) {
            self.rejected_appends.fetch_add(1, Ordering::Relaxed);
            return Err(io::Error::from(io::ErrorKind::StorageFull).into());
        }
        // Lets other tasks run meanwhile.
        tokio::task::yield_now().await;
        if let Some(watch) = self.observer.lock().unwrap().as_mut() {
            entries.iter().for_each(|line| watch(&entry_kind(line)));
        }
        self.inner.append(key, entries).await
    }

    async fn load(&self, key: &StoreKey) -> Result<Option<Vec<RawJson>>, StoreError> {
        self.inner.load(key).await
    }

    async fn list(&self, project: &str) -> Result<Vec<ListedSession>, StoreError> {
        self.inner.list(project).await
    }
}

#[tokio::test]
async fn entries_are_stored_before_the_next_step() {
    let fixture = Fixture::new();
    let store = Arc::new(WatchedStore::default());
    let script = Arc::new(Scripted::replies(json!([bash_call("touch made"), "Done."])).unwrap());
    let agent = fixture.agent_with(Arc::clone(&store), json!([])).script(Arc::clone(&script));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (made, notes) = (fixture.dir("work/made"), Arc::clone(&seen));
    *store.observer.lock().unwrap() = Some(Box::new(move |kind| {
        notes.lock().unwrap().push((kind.to_owned(), made.exists(), script.requests().len()));
    }));
    run_prompt(&agent, "Go.").await;
    let seen = seen.lock().unwrap();
    let note = |kind: &str| seen.iter().find(|(name, ..)| name == kind).cloned().unwrap();
    assert_eq!(note("user").2, 0, "the prompt is stored before the model is asked");
    assert!(!note("tool-start").1, "the start before the call is made");
    assert_eq!(
        note("user tool_result"),
        ("user tool_result".into(), true, 1),
        "the result before the model gets it"
    );
}

#[tokio::test]
async fn failing_store_is_reported_and_the_turn_goes_on() {
    let fixture = Fixture::new();
    let store = Arc::new(WatchedStore::default());
    store.is_failing.store(true, Ordering::Relaxed);
    let agent = fixture.agent_with(Arc::clone(&store), json!([bash_call("touch made"), "Done."]));
    let mut running = query("Go.", &agent);
    let (mut notes, mut session) = (Vec::new(), String::new());
    while let Some(frame) = running.next().await {
        match frame.unwrap() {
            Frame::System(system) => match &system.event {
                SystemEvent::SessionWritesLost(lost) => {
                    notes.push(lost.error_code.clone());
                    // From here on the store works again.
                    store.is_failing.store(false, Ordering::Relaxed);
                }
                SystemEvent::Informational(reply) => notes.push(reply.content.clone()),
                _ => {}
            },
            Frame::Assistant(_) => assert_eq!(notes.first().map(String::as_str), Some("ENOSPC")),
            Frame::Result(result) => session = result.session_id.clone(),
            _ => {}
        }
    }
    assert!(fixture.dir("work/made").exists());
    assert!(notes.last().unwrap().contains("is complete"), "{notes:?}");
    let key = StoreKey::session(fixture.project_key(), session);
    let kept = store.load(&key).await.unwrap().unwrap();
    assert!(kept.len() >= 5, "{kept:?}");
    let mut about = StoredSummary::default();
    about.add_lines(&kept);
    assert_eq!(about.text(), Some("Go."));
}

#[tokio::test]
async fn strict_durability_prevents_calls_while_the_store_fails() {
    let fixture = Fixture::new();
    let store = Arc::new(WatchedStore::default());
    store.is_failing.store(true, Ordering::Relaxed);
    let replies = json!([bash_call("touch made"), {"expect": "session store", "content": ["I could not."]}]);
    let agent = fixture.agent_with(Arc::clone(&store), replies).env("WHIMBREL_DURABILITY", "strict");
    assert_eq!(run_prompt(&agent, "Go.").await.1, "I could not.");
    assert!(!fixture.dir("work/made").exists());
    assert!(store.rejected_appends.load(Ordering::Relaxed) > 0);
}

#[tokio::test]
async fn stored_session_can_be_renamed_and_its_fork_titled() {
    let fixture = Fixture::new();
    let (first, _) = run_prompt(&fixture.agent(json!(["Hello."])), "Hi.").await;
    let session = Session::open(&fixture.agent(json!([])).resume(&first)).await.unwrap();
    let title = RenameSession { title: "Greetings".into(), ..RenameSession::default() };
    session.controls().call(title).await.unwrap();
    assert_eq!(fixture.entry_kinds(&first, None).await.last().map(String::as_str), Some("custom-title"));
    drop(session);
    let forked =
        fixture.agent(json!(["Hello again."])).resume(&first).with(|options| options.fork_session = true);
    let (copy, _) = run_prompt(&forked, "Hi again.").await;
    let listed = fixture.agent(json!([])).sessions().unwrap().list().await.unwrap();
    let title =
        |id: &str| listed.iter().find(|summary| summary.session_id == id).unwrap().custom_title.clone();
    assert_eq!(
        (title(&first).as_deref(), title(&copy).as_deref()),
        (Some("Greetings"), Some("Greetings (fork)"))
    );
}

#[tokio::test]
async fn stored_session_is_rewound_and_resumed() {
    let fixture = Fixture::new();
    let agent = fixture.agent(json!(["One.", "Two.", "Three."]));
    let mut session = Session::open(&agent).await.unwrap();
    let mut id = String::new();
    for (uuid, text) in [("u1", "first"), ("u2", "second")] {
        session.send(User { uuid: Some(uuid.into()), ..User::prompt(text) }).await.unwrap();
        id = session.result().await.unwrap().session_id;
    }
    let controls = session.controls().clone();
    let planned = controls.plan_rewind("u2", RewindScope::Conversation).await.unwrap();
    assert_eq!((planned.messages_dropped, planned.prompt.unwrap().text.as_str()), (2, "second"));
    let rewound = controls.rewind("u2", RewindScope::Conversation).await.unwrap();
    let stored = || async { fixture.agent(json!([])).sessions().unwrap().messages(&id).await.unwrap().len() };
    assert_eq!(stored().await, 2);
    session.send("third").await.unwrap();
    session.result().await.unwrap();
    assert_eq!(stored().await, 4);
    controls.rewind(rewound.undo_id.unwrap(), RewindScope::Conversation).await.unwrap();
    assert_eq!(stored().await, 4);
    drop((session, controls));
    let knows = json!([{"expect": "second", "content": ["Yes."]}]);
    assert_eq!(run_prompt(&fixture.agent(knows).resume(&id), "And?").await.1, "Yes.");
}

#[tokio::test]
async fn open_question_of_a_stored_session_is_asked_again() {
    let fixture = Fixture::new();
    let asking = |replies: Value| fixture.agent(replies).with(|options| options.allowed_tools.clear());
    let (ask, asked) = tokio::sync::oneshot::channel();
    let ask = Mutex::new(Some(ask));
    let agent = asking(json!([bash_call("touch made")])).can_use_tool(move |_| {
        ask.lock().unwrap().take().unwrap().send(()).unwrap();
        std::future::pending()
    });
    let mut session = Session::open(&agent).await.unwrap();
    session.send("go").await.unwrap();
    let Some(Ok(Frame::System(init))) = session.next().await else { panic!() };
    asked.await.unwrap();
    drop(session);

    let agent = asking(json!(["Done."])).resume(&init.session_id);
    let agent = agent.can_use_tool(|_| async { PermissionResult::allow() });
    let mut session = Session::open(&agent).await.unwrap();
    let calls = session.controls().resume_pending_calls().await.unwrap();
    assert_eq!(calls[0].input["command"], "touch made");
    assert_eq!(session.result().await.unwrap().result.as_deref(), Some("Done."));
    assert!(fixture.dir("work").join("made").exists());
}

/// Opens a session and waits until it is loaded.
async fn open_loaded(agent: &Agent) -> Session {
    let session = Session::open(agent).await.unwrap();
    session.info().await.unwrap();
    session
}

#[tokio::test]
async fn second_session_on_one_id_learns_of_the_conflict() {
    let fixture = Fixture::new();
    let stores: [(&str, SharedStore); 3] = [
        ("memory", MemoryStore::default().into()),
        ("files", FileStore::new(fixture.dir("tmp")).into()),
        ("load and append only", WatchedStore::default().into()),
    ];
    for (name, store) in stores {
        let agent = |replies: Value| fixture.agent_with(store.clone(), replies);
        let (id, _) = run_prompt(&agent(json!(["Hello."])), "Hi.").await;
        let script = Arc::new(Scripted::replies(json!([bash_call("touch made"), "two"])).unwrap());
        let mut first = open_loaded(&agent(json!(["one", "three"])).resume(&id)).await;
        let mut second = open_loaded(&agent(json!([])).script(Arc::clone(&script)).resume(&id)).await;
        let ask = async |session: &mut Session| {
            session.send("Go on.").await.unwrap();
            session.result().await.unwrap()
        };
        assert_eq!(ask(&mut first).await.result.as_deref(), Some("one"), "{name}");
        for _ in 0..2 {
            let refused = ask(&mut second).await;
            assert_eq!(refused.subtype, Outcome::ErrorDuringExecution, "{name}: {refused:?}");
            assert!(refused.errors.unwrap()[0].contains("continued or deleted elsewhere"), "{name}");
        }
        let error = second.ask("Go on.").await.unwrap_err();
        assert!(matches!(error, TurnError::Conflict(_)), "{name}: {error}");
        assert_eq!(script.requests().len(), 0, "{name}: no model is asked");
        assert_eq!(ask(&mut first).await.result.as_deref(), Some("three"), "{name}: the other one goes on");
        let messages = agent(json!([])).sessions().unwrap().messages(&id).await.unwrap();
        assert_eq!(messages.len(), 6, "{name}: nothing is lost and nothing added");
        let resumed = agent(json!([{"expect": "three", "content": ["Found."]}])).resume(&id);
        assert_eq!(run_prompt(&resumed, "And?").await.1, "Found.", "{name}");
    }
}

#[tokio::test]
async fn conflict_during_a_turn_ends_it_before_its_next_effect() {
    let fixture = Fixture::new();
    let (id, _) = run_prompt(&fixture.agent(json!(["Hello."])), "Hi.").await;
    let (started, mut waiting) = tokio::sync::mpsc::unbounded_channel();
    let hold = tool_with_state(started, "hold", "Waits", |started: UnboundedSender<_>| async move {
        let (release, released) = tokio::sync::oneshot::channel::<()>();
        started.send(release).unwrap();
        released.await.unwrap();
    });
    let call = json!([{"type": "tool_use", "name": "mcp__own__hold", "input": {}}]);
    let agent = fixture
        .agent(json!([call, bash_call("touch made"), "never said"]))
        .tool_server(ToolServer::new("own").tool(hold))
        .allow_tool("mcp__own")
        .resume(&id);
    let mut session = Session::open(&agent).await.unwrap();
    session.send("Go.").await.unwrap();
    let release = waiting.recv().await.unwrap();
    assert_eq!(run_prompt(&fixture.agent(json!(["Mine."])).resume(&id), "Me first.").await.1, "Mine.");
    release.send(()).unwrap();
    let result = session.result().await.unwrap();
    assert_eq!(result.subtype, Outcome::ErrorDuringExecution, "{result:?}");
    assert!(!fixture.dir("work/made").exists());
    let messages = fixture.agent(json!([])).sessions().unwrap().messages(&id).await.unwrap();
    assert!(serde_json::to_string(&messages).unwrap().contains("Mine."));
}

#[tokio::test]
async fn newest_changed_and_single_sessions_are_read() {
    let fixture = Fixture::new();
    let sessions = fixture.agent(json!([])).sessions().unwrap();
    let mut ids = Vec::new();
    for prompt in ["One.", "Two.", "Three."] {
        ids.push(run_prompt(&fixture.agent(json!(["ok"])), prompt).await.0);
    }
    // The store counts in milliseconds, in which all may have been written.
    let all = sessions.list().await.unwrap();
    assert_eq!(sessions.newest(2).await.unwrap(), all[..2]);
    assert_eq!(sessions.newest(9).await.unwrap(), all);
    let newest = all[0].last_modified;
    let changed = sessions.changed_since(newest).await.unwrap();
    assert!(!changed.is_empty() && changed.iter().all(|session| session.last_modified >= newest));
    assert_eq!(sessions.changed_since(newest + 1).await.unwrap(), []);
    let found = sessions.find(&ids[1]).await.unwrap().unwrap();
    assert_eq!((found.session_id.as_str(), found.summary.as_str()), (ids[1].as_str(), "Two."));
    assert_eq!(sessions.find("aaaaaaaa-2222-4333-8444-555555555555").await.unwrap(), None);
    let error = sessions.lock(&ids[0]).await.unwrap_err().to_string();
    assert!(error.contains("cannot tell which engine"), "{error}");
}

#[tokio::test]
async fn lock_of_a_session_on_disk_names_its_engine() {
    let fixture = Fixture::new();
    let home = fixture.dir("home").display().to_string();
    let environment = Environment::from_iter([("HOME", home), ("PATH", std::env::var("PATH").unwrap())]);
    let agent = Agent::new().environment(environment).cwd(fixture.dir("work"));
    let agent = agent.script(Scripted::replies(json!(["Hello."])).unwrap());
    let sessions = agent.sessions().unwrap();
    let mut session = Session::open(&agent).await.unwrap();
    session.send("Hi.").await.unwrap();
    let id = session.result().await.unwrap().session_id;
    let SessionLock::Held(Some(owner)) = sessions.lock(&id).await.unwrap() else { panic!() };
    assert_eq!(owner.pid, std::process::id());
    assert!(owner.program.is_some() && owner.host.is_some(), "{owner:?}");
    let refused = Session::open(&agent.clone().resume(&id)).await.unwrap_err();
    let OpenError::SessionBusy { holder, .. } = &refused else { panic!("{refused:?}") };
    assert!(holder.contains(&owner.to_string()), "{holder}");
    session.finish_input();
    while session.next().await.is_some() {}
    assert_eq!(sessions.lock(&id).await.unwrap(), SessionLock::Free);
    assert_eq!(sessions.find(&id[..8]).await.unwrap().unwrap().session_id, id);
    assert!(sessions.lock("aaaaaaaa-2222-4333-8444-555555555555").await.is_err());
}

#[tokio::test]
async fn imported_conversation_is_resumed() {
    const SESSION: &str = "67e55044-10b1-426f-9247-bb680e5fe0c8";
    let fixture = Fixture::new();
    let script = Arc::new(Scripted::replies(json!(["You are Ann."])).unwrap());
    let agent = fixture.agent(json!([])).script(Arc::clone(&script));
    let message =
        |role, content: Value| ImportedMessage { role, content: serde_json::from_value(content).unwrap() };
    let call = json!([{"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "id -un"}}]);
    let result = json!([{"type": "tool_result", "tool_use_id": "c1", "content": "ann"}]);
    let messages = vec![
        message(Role::User, json!("Who runs this?")),
        message(Role::Assistant, call),
        message(Role::User, result),
        message(Role::Assistant, json!([{"type": "text", "text": "It is Ann."}])),
    ];
    let sessions = agent.sessions().unwrap();
    sessions.import(&fixture.dir("work"), SESSION, messages.clone()).await.unwrap();
    let again = sessions.import(&fixture.dir("work"), SESSION, messages).await;
    assert!(again.is_err(), "a session that exists is kept");
    let (session, reply) = run_prompt(&agent.clone().resume(SESSION), "And who am I?").await;
    assert_eq!((session.as_str(), reply.as_str()), (SESSION, "You are Ann."));
    let request = script.requests().pop().unwrap().to_string();
    for part in ["Who runs this?", "id -un", r#""content":"ann""#, "It is Ann.", "And who am I?"] {
        assert!(request.contains(part), "{part}: {request}");
    }
    assert!(sessions.import(&fixture.dir("work"), "no id", Vec::new()).await.is_err());
}
