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
    assert_eq!(ask(&mut app, 1), [Effect::ShowRequest(1), Effect::SetTitle("(waits) whimbrel: one".into())]);
    let effects = press(&mut app, later(KeyCode::Char('y')));
    let title = Effect::SetTitle("whimbrel: one".into());
    assert!(matches!(&effects[..], [Effect::Answer { id: 1, .. }, shown] if *shown == title), "{effects:?}");
    app.last_key = None;
    ask(&mut app, 2);
    let effects = press(&mut app, later(KeyCode::Escape));
    assert!(
        matches!(&effects[..], [Effect::Answer { id: 2, .. }, Effect::Interrupt, Effect::SetTitle(_)]),
        "{effects:?}"
    );
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

fn picture() -> crate::editor::Picture {
    crate::editor::Picture { media_type: "image/png".into(), data: "AA==".into() }
}

fn pieces(app: &App) -> Vec<Piece> {
    app.input.editor.pieces()
}

fn ask_for_bash(app: &mut App, id: u64, more: &Value) -> Vec<Effect> {
    let mut request = json!({"tool_name": "Bash", "tool_use_id": "t", "input": {"command": "ls"}});
    request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let request = Box::new(serde_json::from_value(request).unwrap());
    app.update(AppEvent::Permission { id, request }, Instant::now())
}

#[test]
fn pasted_path_of_no_picture_stays_text() {
    let mut app = app();
    let effects = app.update(AppEvent::Paste("/tmp/no.png".into()), Instant::now());
    let expected = Effect::ReadPicture { path: "/tmp/no.png".into(), pasted: "/tmp/no.png".into() };
    assert_eq!(effects, [expected]);
    let reply = Reply::PastedPicture { pasted: "/tmp/no.png".into(), picture: None };
    app.update(AppEvent::Reply(reply), Instant::now());
    assert_eq!(app.input.editor.text(), "/tmp/no.png");
    let reply = Reply::PastedPicture { pasted: "/tmp/a.png".into(), picture: Some(picture()) };
    app.update(AppEvent::Reply(reply), Instant::now());
    assert_eq!(pieces(&app), [Piece::Text("/tmp/no.png".into()), Piece::Picture(1, picture())]);
}

#[test]
fn pictures_survive_the_queue_the_editor_and_a_lost_session() {
    let with_picture = [Piece::Text("see ".into()), Piece::Picture(1, picture())];
    let queued = || {
        let mut app = app();
        submit(&mut app, "one");
        type_text(&mut app, "see ");
        app.attach_picture(picture());
        enter(&mut app);
        app
    };
    let mut recalled = queued();
    press(&mut recalled, Key::plain(KeyCode::Up));
    assert_eq!(pieces(&recalled), with_picture);
    let edited = Reply::Edited(Ok("look: see [picture 1]!".into()));
    recalled.update(AppEvent::Reply(edited), Instant::now());
    let expected = [Piece::Text("look: see ".into()), Piece::Picture(1, picture()), Piece::Text("!".into())];
    assert_eq!(pieces(&recalled), expected);
    let mut lost = queued();
    lost.update(AppEvent::SessionEnded, Instant::now());
    assert_eq!(pieces(&lost), with_picture);
}

#[test]
fn end_of_linear_input_refuses_open_and_later_requests() {
    let mut app = app();
    submit(&mut app, "one");
    ask_for_bash(&mut app, 1, &json!({}));
    let refused = |effects: &[Effect], id: u64| {
        effects.iter().any(|effect| {
            matches!(effect, Effect::Answer { id: answered, answer: whimbrel::PermissionResult::Deny { .. } }
                if *answered == id)
        })
    };
    let effects = app.update(AppEvent::InputEnded, Instant::now());
    assert!(refused(&effects, 1), "{effects:?}");
    let effects = ask_for_bash(&mut app, 2, &json!({}));
    assert!(refused(&effects, 2), "{effects:?}");
    assert_eq!(frame(&mut app, &result()).last(), Some(&Effect::Leave(0)));
}

#[test]
fn signals_leave_with_their_own_codes() {
    use crate::screen::Termination::{Hangup, Interrupt, Terminate};
    for (reason, code) in [(Hangup, 129), (Interrupt, 130), (Terminate, 143)] {
        let effects = app().update(AppEvent::Terminate(reason), Instant::now());
        assert_eq!(effects, [Effect::Leave(code)]);
    }
}

#[test]
fn request_leaves_an_open_list_and_a_note_alone() {
    let mut app = app();
    submit(&mut app, "#use tabs");
    assert!(app.picker.is_some());
    ask_for_bash(&mut app, 1, &json!({}));
    assert!(app.picker.is_some());
}

#[test]
fn prompts_are_forgotten_only_after_the_rewind() {
    let mut app = app();
    submit(&mut app, "one");
    frame(&mut app, &result());
    let scope = whimbrel::wire::control::RewindScope::Conversation;
    app.update(AppEvent::Reply(Reply::Failed("no".into())), Instant::now());
    assert_eq!(app.sent_prompts.len(), 1);
    let rewound =
        Reply::Rewound { prompt: "u".into(), scope, text: "one".into(), summary: "went back".into() };
    app.update(AppEvent::Reply(rewound), Instant::now());
    assert_eq!((app.sent_prompts.len(), app.input.editor.text()), (0, "one"));
}

#[test]
fn hint_of_a_second_press_ends_with_its_time() {
    let mut app = app();
    let now = Instant::now();
    app.update(AppEvent::Key(Key::ctrl('c')), now);
    assert!(app.current_hint(now + SECOND_PRESS - Duration::from_millis(1)).is_some());
    assert_eq!(app.current_hint(now + SECOND_PRESS), None);
}

#[test]
fn leaving_asks_while_a_command_line_runs() {
    let mut app = app();
    submit(&mut app, "!sleep 9");
    assert_eq!(press(&mut app, Key::ctrl('d')), []);
    assert!(app.picker.is_some());
}

#[test]
fn first_prompt_may_be_a_command_of_the_terminal() {
    let mut app = app();
    app.session = SessionPhase::Opening;
    app.submit_first_prompt("/help");
    assert!(!app.queue.has_waiting());
    assert!(matches!(app.effects.as_slice(), [Effect::Show(Item::Page(_))]), "{:?}", app.effects);
    app.submit_first_prompt("/of-the-project");
    assert!(app.queue.has_waiting());
}

#[test]
fn new_conversation_keeps_what_the_user_chose() {
    let mut app = app();
    app.update(AppEvent::Reply(Reply::Model(Some("x".into()))), Instant::now());
    submit(&mut app, "/effort high");
    let effects = submit(&mut app, "/clear");
    let chosen = effects.iter().find_map(|effect| match effect {
        Effect::OpenSession(effect::SessionChoice::New, chosen) => Some(chosen.clone()),
        _ => None,
    });
    let chosen = chosen.unwrap();
    assert_eq!((chosen.model.as_deref(), chosen.effort.unwrap().to_string()), (Some("x"), "high".into()));
}

#[test]
fn commands_that_the_engine_adds_later_can_be_typed() {
    let mut app = app();
    let names = |app: &App| app.slash_commands.iter().map(|c| c.name.clone()).collect::<Vec<_>>();
    frame(
        &mut app,
        &json!({"type": "system", "subtype": "init", "session_id": "s", "model": "m", "cwd": "/",
        "tools": [], "mcp_servers": [], "permissionMode": "default", "slash_commands": ["deploy"],
        "apiKeySource": "none", "claude_code_version": "0", "output_style": "default", "uuid": "i"}),
    );
    assert_eq!(names(&app), ["deploy"]);
    frame(
        &mut app,
        &json!({"type": "system", "subtype": "commands_changed", "session_id": "s", "uuid": "c",
        "commands": [{"name": "review", "description": "d"}]}),
    );
    assert_eq!(names(&app), ["review"]);
}

#[test]
fn nothing_spins_while_a_request_waits() {
    let mut app = app();
    submit(&mut app, "one");
    let now = Instant::now();
    assert!(app.next_change(now).is_some());
    ask_for_bash(&mut app, 1, &json!({}));
    assert_eq!(app.next_change(now), None);
}

#[test]
fn request_is_shown_again_where_a_smaller_screen_hides_it() {
    let mut app = app();
    submit(&mut app, "one");
    ask_for_bash(&mut app, 1, &json!({}));
    let smaller = Size { columns: 30, rows: 8 };
    assert_eq!(app.update(AppEvent::Resized(smaller), Instant::now()), [Effect::ShowRequest(1)]);
    app.prompts[0].place = RequestPlace::Scrollback;
    assert_eq!(app.update(AppEvent::Resized(smaller), Instant::now()), []);
}

#[test]
fn resumed_session_has_all_entries_in_the_transcript() {
    let mut app = app();
    let answer = |text: &str| Item::Answer(text.into());
    let reply =
        Reply::Resumed { earlier: vec![answer("one")], last: vec![answer("two")], prompts: Vec::new() };
    let effects = app.update(AppEvent::Reply(reply), Instant::now());
    let mark = Item::Mark("the session is resumed; /transcript shows 1 earlier entries".into());
    assert_eq!(effects, [Effect::ShowEnd(vec![answer("two")]), Effect::Show(mark.clone())]);
    let kept: Vec<Item> = app.conversation.transcript.items().to_vec();
    assert_eq!(kept, [answer("one"), answer("two"), mark]);
}

#[test]
fn request_names_the_tool_and_the_agent() {
    let mut app = app();
    submit(&mut app, "one");
    ask_for_bash(&mut app, 1, &json!({"agent_id": "a1"}));
    let presenter = crate::present::Presenter::new(crate::theme::Theme::PLAIN, "/w".into());
    let shown = live::request_lines(&app.prompts[0], &presenter);
    let texts: Vec<String> = shown.iter().map(crate::text::Line::text).collect();
    assert_eq!(texts, ["  asked by subagent a1", "  Bash", "  ls"]);
    assert!(app.has_room_for(&app.prompts[0], &presenter));
    app.size.rows = 10;
    assert!(!app.has_room_for(&app.prompts[0], &presenter));
}

#[test]
fn small_screen_goes_on_with_lines_and_shows_what_was_typed() {
    let mut app = app();
    submit(&mut app, "one");
    ask_for_bash(&mut app, 1, &json!({}));
    app.input.set_text("draft");
    let effects = app.switch_to_lines();
    let texts: Vec<&str> = effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Show(Item::Note(_, text)) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(texts[1], "the line held: draft");
    assert_eq!(effects.last(), Some(&Effect::ShowRequest(1)));
    assert!(app.input.is_empty());
}
