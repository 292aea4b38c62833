//! Tests of the application: keys and frames in, effects out.

use serde_json::{Value, json};
use whimbrel::Frame;

use super::*;
use crate::app::event::Reply;
use crate::editor::Piece;
use crate::screen::{KeyCode, Modifiers};

fn app() -> App {
    let start = StartInfo {
        version: "0".into(),
        cwd: "/home/ann/project".into(),
        home: Some("/home/ann".into()),
        model: Some("m".into()),
        new_uuid: || "u".into(),
    };
    let (mut app, warnings) =
        App::new(start, Preferences::default(), Size { columns: 80, rows: 24 }, Instant::now());
    assert_eq!(warnings, Vec::<String>::new());
    app.update(AppEvent::SessionOpened, Instant::now());
    app
}

fn press(app: &mut App, key: Key) -> Vec<Effect> {
    app.update(AppEvent::Key(key), Instant::now())
}

fn type_text(app: &mut App, text: &str) -> Vec<Effect> {
    text.chars().flat_map(|character| press(app, Key::plain(KeyCode::Char(character)))).collect()
}

fn enter(app: &mut App) -> Vec<Effect> {
    press(app, Key::plain(KeyCode::Enter))
}

fn submit(app: &mut App, text: &str) -> Vec<Effect> {
    type_text(app, text);
    enter(app)
}

fn frame(app: &mut App, frame: &Value) -> Vec<Effect> {
    let frame: Frame = whimbrel::wire::decode(&frame.to_string()).unwrap();
    app.update(AppEvent::Frame(Box::new(frame)), Instant::now())
}

fn result() -> Value {
    json!({"type": "result", "subtype": "success", "is_error": false, "duration_ms": 1, "duration_api_ms": 1,
        "num_turns": 1, "result": "", "session_id": "s", "total_cost_usd": 0.0, "usage": {}, "uuid": "r"})
}

fn sent(effects: &[Effect]) -> Vec<String> {
    let texts = effects.iter().filter_map(|effect| match effect {
        Effect::Send { content, .. } => Some(match content.as_slice() {
            [Piece::Text(text)] => text.clone(),
            other => format!("{other:?}"),
        }),
        _ => None,
    });
    texts.collect()
}

#[test]
fn prompt_is_sent_and_queued_prompts_follow_together() {
    let mut app = app();
    assert_eq!(sent(&submit(&mut app, "one")), ["one"]);
    assert_eq!(sent(&submit(&mut app, "two")), Vec::<String>::new());
    assert_eq!(sent(&submit(&mut app, "three")), Vec::<String>::new());
    assert_eq!(sent(&frame(&mut app, &result())), ["two\n\nthree"]);
    assert_eq!(sent(&frame(&mut app, &result())), Vec::<String>::new());
}

#[test]
fn prompts_typed_before_the_session_opens_wait_for_it() {
    let mut app = app();
    app.session = SessionPhase::Opening;
    assert_eq!(sent(&submit(&mut app, "early")), Vec::<String>::new());
    assert_eq!(sent(&app.update(AppEvent::SessionOpened, Instant::now())), ["early"]);
}

#[test]
fn up_takes_the_last_queued_prompt_back() {
    let mut app = app();
    submit(&mut app, "one");
    submit(&mut app, "two");
    press(&mut app, Key::plain(KeyCode::Up));
    assert_eq!((app.input.editor.text(), app.queue.has_waiting()), ("two", false));
}

#[test]
fn escape_interrupts_once_and_keeps_the_text() {
    let mut app = app();
    submit(&mut app, "one");
    submit(&mut app, "two");
    type_text(&mut app, "draft");
    let effects = press(&mut app, Key::plain(KeyCode::Escape));
    assert_eq!(effects, [Effect::Interrupt]);
    assert_eq!(sent(&frame(&mut app, &result())), ["two"]);
    assert_eq!(app.input.editor.text(), "draft");
}

#[test]
fn escape_closes_a_list_before_it_interrupts() {
    let mut app = app();
    submit(&mut app, "one");
    type_text(&mut app, "/mo");
    assert!(app.input.completion.is_some());
    assert_eq!(press(&mut app, Key::plain(KeyCode::Escape)), []);
    assert_eq!(press(&mut app, Key::plain(KeyCode::Escape)), [Effect::Interrupt]);
}

#[test]
fn cancel_clears_then_interrupts_then_leaves_at_the_second_press() {
    let mut app = app();
    submit(&mut app, "one");
    type_text(&mut app, "draft");
    assert_eq!(press(&mut app, Key::ctrl('c')), []);
    assert_eq!(app.input.editor.text(), "");
    assert_eq!(press(&mut app, Key::ctrl('c')), [Effect::Interrupt]);
    frame(&mut app, &result());
    assert_eq!(press(&mut app, Key::ctrl('c')), []);
    assert_eq!(press(&mut app, Key::ctrl('c')), [Effect::Leave(0)]);
    press(&mut app, Key::plain(KeyCode::Up));
    assert_eq!(app.input.editor.text(), "draft", "what was cleared is in the history");
}

#[test]
fn leaving_asks_while_something_runs() {
    let mut app = app();
    submit(&mut app, "one");
    assert_eq!(press(&mut app, Key::ctrl('d')), []);
    assert!(app.picker.is_some());
    assert_eq!(press(&mut app, Key::plain(KeyCode::Char('y'))), [Effect::Leave(0)]);
}

#[test]
fn steering_hands_the_queue_over_and_shows_where_it_came_in() {
    let mut app = app();
    submit(&mut app, "one");
    submit(&mut app, "two");
    let effects = press(&mut app, Key::ctrl('s'));
    assert_eq!(sent(&effects), ["two"]);
    assert!(!app.queue.has_waiting() && app.queue.steered.len() == 1);
    let replay = json!({"type": "user", "uuid": "u", "isReplay": true, "session_id": "s", "parent_tool_use_id": null,
        "message": {"role": "user", "content": "two"}});
    let effects = frame(&mut app, &replay);
    let expected = Item::User { text: "two".into(), entry: crate::transcript::PromptEntry::Steered };
    assert_eq!(effects, [Effect::Show(expected)]);
}

#[test]
fn unknown_command_is_named_and_sends_nothing() {
    let mut app = app();
    let effects = submit(&mut app, "/nope");
    assert!(
        matches!(&effects[..], [Effect::Show(Item::Note(_, text))] if text.contains("/nope")),
        "{effects:?}"
    );
    assert_eq!(app.input.editor.text(), "/nope");
}

#[test]
fn shell_line_runs_beside_the_engine_and_is_recorded() {
    let mut app = app();
    let effects = submit(&mut app, "!ls");
    assert!(effects.contains(&Effect::RunShell("ls".into())), "{effects:?}");
    let ended = Reply::ShellEnded {
        command: "ls".into(),
        output: "a\n".into(),
        exit: crate::transcript::ShellExit::Code(0),
    };
    let effects = app.update(AppEvent::Reply(ended), Instant::now());
    assert_eq!(effects[0], Effect::RecordShell { command: "ls".into(), output: "a\n".into() });
}

#[test]
fn paste_neither_sends_nor_completes() {
    let mut app = app();
    let effects = app.update(AppEvent::Paste("/model\n@src\n".into()), Instant::now());
    assert_eq!(effects, []);
    assert!(app.input.completion.is_none());
    assert_eq!(app.input.editor.text(), "/model\n@src\n");
}

#[test]
fn permission_prompt_is_answered_and_escape_interrupts() {
    let request = json!({"tool_name": "Bash", "tool_use_id": "t", "input": {"command": "ls"}});
    let ask = |app: &mut App, id| {
        let request = Box::new(serde_json::from_value(request.clone()).unwrap());
        app.update(AppEvent::Permission { id, request }, Instant::now() + Duration::from_millis(1))
    };
    let later = |code| Key { at: Instant::now() + Duration::from_secs(5), ..Key::plain(code) };
    let mut app = app();
    submit(&mut app, "one");
    app.last_key = None;
    assert_eq!(ask(&mut app, 1), [Effect::ShowRequest(1)]);
    let effects = press(&mut app, later(KeyCode::Char('y')));
    assert!(matches!(&effects[..], [Effect::Answer { id: 1, .. }]), "{effects:?}");
    app.last_key = None;
    ask(&mut app, 2);
    let effects = press(&mut app, later(KeyCode::Escape));
    assert!(matches!(&effects[..], [Effect::Answer { id: 2, .. }, Effect::Interrupt]), "{effects:?}");
}

#[test]
fn shift_tab_goes_through_the_modes() {
    use whimbrel::PermissionMode::{AcceptEdits, Default, Plan};
    let mut app = app();
    let key = Key::new(KeyCode::Tab, Modifiers::SHIFT);
    let modes: Vec<Effect> = (0..3).flat_map(|_| press(&mut app, key)).collect();
    assert_eq!(modes, [AcceptEdits, Plan, Default].map(Effect::SetMode));
}

#[test]
fn file_list_belongs_to_the_query_in_the_line() {
    let mut app = app();
    let effects = type_text(&mut app, "see @sr");
    assert_eq!(effects.last(), Some(&Effect::SuggestFiles("sr".into())));
    let reply = |query: &str| Reply::Files { query: query.into(), paths: vec!["src/main.rs".into()] };
    app.update(AppEvent::Reply(reply("s")), Instant::now());
    assert!(app.input.completion.is_none(), "an answer to an older query");
    app.update(AppEvent::Reply(reply("sr")), Instant::now());
    enter(&mut app);
    assert_eq!(app.input.editor.text(), "see @src/main.rs ");
}

#[test]
fn keys_at_random_never_panic() {
    let mut app = app();
    let mut state = 1_u64;
    let codes = [
        KeyCode::Enter,
        KeyCode::Escape,
        KeyCode::Up,
        KeyCode::Down,
        KeyCode::Tab,
        KeyCode::Backspace,
        KeyCode::Char('a'),
        KeyCode::Char('/'),
        KeyCode::Char('@'),
        KeyCode::Char('!'),
        KeyCode::Char('?'),
        KeyCode::Char('c'),
        KeyCode::Char('r'),
        KeyCode::Char('y'),
        KeyCode::Char('日'),
        KeyCode::Left,
    ];
    for _ in 0..20_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let pick = usize::try_from(state >> 40).unwrap();
        let modifiers = Modifiers { control: pick % 5 == 0, alt: pick % 7 == 0, shift: pick % 11 == 0 };
        press(&mut app, Key::new(codes[pick % codes.len()], modifiers));
        if pick % 13 == 0 {
            frame(&mut app, &result());
        }
        if pick % 17 == 0 {
            app.update(AppEvent::Paste("x\ny".repeat(pick % 20)), Instant::now());
        }
    }
}
