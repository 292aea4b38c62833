//! Property tests: every written frame can be read, and reading never panics.

use std::collections::BTreeMap;

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use whimbrel_wire::content::{Content, ResultContent, Source};
use whimbrel_wire::control::{
    CanUseTool, ControlRequest, Initialize, Interrupt, Request, SetModel, SetPermissionMode,
};
use whimbrel_wire::message::{Assistant, Outcome, Reply, Said, TerminalReason, TurnResult, User};
use whimbrel_wire::permission::{
    Destination, PermissionBehavior, PermissionMode, PermissionUpdate, RuleValue,
};
use whimbrel_wire::{Block, Frame, Role, StopReason, Usage, decode, encode};

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map(".{0,8}", inner, 0..4).prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn object() -> impl Strategy<Value = Map<String, Value>> {
    btree_map("[a-z_]{1,8}", json_value(), 0..4).prop_map(|fields| fields.into_iter().collect())
}

/// A value other than null, which would read as absent.
fn non_null_value() -> impl Strategy<Value = Value> {
    json_value().prop_filter("null is absent", |value| !value.is_null())
}

fn source() -> impl Strategy<Value = Source> {
    prop_oneof![
        "[A-Za-z0-9+/]{0,40}".prop_map(|data| Source::Base64 { media_type: "image/png".into(), data }),
        ".{0,20}".prop_map(|url| Source::Url { url }),
        ".{0,20}".prop_map(|file_id| Source::File { file_id }),
    ]
}

fn leaf_block() -> impl Strategy<Value = Block> {
    prop_oneof![
        (".{0,20}", option::of(non_null_value()))
            .prop_map(|(text, citations)| Block::Text { text, citations }),
        (".{0,20}", ".{0,20}").prop_map(|(thinking, signature)| Block::Thinking { thinking, signature }),
        ".{0,20}".prop_map(|data| Block::RedactedThinking { data }),
        (".{0,9}", ".{0,9}", json_value()).prop_map(|(id, name, input)| Block::ToolUse { id, name, input }),
        source().prop_map(|source| Block::Image { source }),
        (source(), option::of(".{0,9}")).prop_map(|(source, title)| Block::Document { source, title }),
        object().prop_map(|mut fields| {
            fields.insert("type".into(), "brand_new".into());
            Block::Other(fields)
        }),
    ]
}

fn block() -> impl Strategy<Value = Block> {
    let content = prop_oneof![
        ".{0,20}".prop_map(ResultContent::Text),
        vec(leaf_block(), 0..3).prop_map(ResultContent::Blocks),
    ];
    let result = (".{0,9}", option::of(content), option::of(any::<bool>()))
        .prop_map(|(tool_use_id, content, is_error)| Block::ToolResult { tool_use_id, content, is_error });
    prop_oneof![4 => leaf_block(), 1 => result]
}

fn content() -> impl Strategy<Value = Content> {
    prop_oneof![".{0,40}".prop_map(Content::Text), vec(block(), 0..4).prop_map(Content::Blocks)]
}

fn user() -> impl Strategy<Value = Frame> {
    let flags = (option::of(any::<bool>()), option::of(any::<bool>()));
    (content(), option::of(".{0,9}"), option::of(".{0,9}"), flags, option::of(non_null_value())).prop_map(
        |(content, parent_tool_use_id, uuid, (is_replay, should_query), tool_use_result)| {
            let message = Said { role: Role::User, content };
            let prompt = User::prompt("");
            User { message, parent_tool_use_id, uuid, is_replay, should_query, tool_use_result, ..prompt }
                .into()
        },
    )
}

/// Parses a value that has only its required fields.
fn parse_minimal<T: DeserializeOwned>(json: &str) -> T {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"))
}

fn stop_reason() -> impl Strategy<Value = Option<StopReason>> {
    option::of(prop_oneof![
        Just(StopReason::EndTurn),
        Just(StopReason::ToolUse),
        "[x-z]{1,5}".prop_map(StopReason::Other)
    ])
}

fn usage() -> impl Strategy<Value = Usage> {
    (any::<u64>(), any::<u64>()).prop_map(|(input_tokens, output_tokens)| Usage {
        input_tokens,
        output_tokens,
        ..Usage::default()
    })
}

fn assistant() -> impl Strategy<Value = Frame> {
    (vec(block(), 0..4), stop_reason(), usage(), option::of(".{0,9}")).prop_map(
        |(content, stop_reason, usage, parent_tool_use_id)| {
            let message = Reply {
                id: "m".into(),
                kind: "message".into(),
                role: Role::Assistant,
                model: "model".into(),
                content,
                stop_reason,
                stop_sequence: None,
                usage,
            };
            let plain = r#"{"message":{"model":"m","content":[]},"parent_tool_use_id":null}"#;
            let plain: Assistant = parse_minimal(plain);
            Assistant { message, parent_tool_use_id, ..plain }.into()
        },
    )
}

fn turn_result() -> impl Strategy<Value = Frame> {
    let outcome =
        prop_oneof![Just(Outcome::Success), Just(Outcome::ErrorMaxTurns), Just(Outcome::ErrorMaxBudgetUsd)];
    let reason = option::of(prop_oneof![
        Just(TerminalReason::Completed),
        "[x-z]{1,5}".prop_map(TerminalReason::Other)
    ]);
    let texts = (option::of(".{0,40}"), option::of(vec(".{0,9}", 0..3)));
    (outcome, any::<bool>(), texts, stop_reason(), usage(), 0.0..1e6_f64, reason, option::of(non_null_value())).prop_map(
        |(subtype, is_error, (result, errors), stop_reason, usage, cost, terminal_reason, structured_output)| {
            let plain = r#"{"subtype":"success","is_error":false,"duration_ms":1,"duration_api_ms":1,"num_turns":1}"#;
            let plain: TurnResult = parse_minimal(plain);
            let total_cost_usd = cost;
            TurnResult {
                subtype,
                is_error,
                result,
                errors,
                stop_reason,
                usage,
                total_cost_usd,
                terminal_reason,
                structured_output,
                ..plain
            }
            .into()
        },
    )
}

fn permission_update() -> impl Strategy<Value = PermissionUpdate> {
    let rule = (".{0,9}", option::of(".{0,9}"))
        .prop_map(|(tool_name, rule_content)| RuleValue { tool_name, rule_content });
    let destination = prop::sample::select(Destination::ALL);
    prop_oneof![
        (vec(rule, 0..3), prop::sample::select(PermissionBehavior::ALL), destination.clone()).prop_map(
            |(rules, behavior, destination)| PermissionUpdate::AddRules { rules, behavior, destination }
        ),
        (prop::sample::select(PermissionMode::ALL), destination)
            .prop_map(|(mode, destination)| PermissionUpdate::SetMode { mode, destination }),
    ]
}

fn request() -> impl Strategy<Value = Request> {
    let prompt = option::of(vec(".{0,9}", 0..3));
    prop_oneof![
        (option::of(any::<bool>()), option::of(any::<String>())).prop_map(
            |(cancel_queued, user_message_uuid)| Interrupt { cancel_queued, user_message_uuid }.into()
        ),
        option::of(".{0,9}").prop_map(|model| SetModel { model }.into()),
        prop::sample::select(PermissionMode::ALL).prop_map(|mode| SetPermissionMode { mode }.into()),
        (prompt, option::of(object())).prop_map(|(system_prompt, schema)| {
            Initialize { system_prompt, json_schema: schema.map(Value::Object), ..Initialize::default() }
                .into()
        }),
        (".{0,9}", object(), option::of(vec(permission_update(), 0..3))).prop_map(
            |(tool_name, input, permission_suggestions)| {
                CanUseTool { tool_name, input, permission_suggestions, ..CanUseTool::default() }.into()
            }
        ),
    ]
}

fn frame() -> impl Strategy<Value = Frame> {
    let control = (".{0,12}", request()).prop_map(|(id, request)| ControlRequest::new(id, request).into());
    prop_oneof![user(), assistant(), turn_result(), control]
}

/// An object that resembles a line: a known or unknown type, perhaps a known subtype, and random fields.
fn frame_like_line() -> impl Strategy<Value = String> {
    let kinds = prop_oneof![prop::sample::select(Frame::KINDS).prop_map(String::from), ".{0,9}"];
    let subtypes: Vec<&str> =
        [Request::SUBTYPES, whimbrel_wire::system::SystemEvent::SUBTYPES, &["success", "error"]].concat();
    let body: BoxedStrategy<BTreeMap<String, Value>> = btree_map(
        prop::sample::select(vec![
            "message",
            "content",
            "request",
            "response",
            "request_id",
            "uuid",
            "status",
            "usage",
            "x",
        ])
        .prop_map(String::from),
        json_value(),
        0..5,
    )
    .boxed();
    (kinds, prop::sample::select(subtypes), body.clone(), body).prop_map(
        |(kind, subtype, mut fields, mut inner)| {
            inner.insert("subtype".into(), subtype.into());
            fields.insert("type".into(), kind.into());
            fields.insert("subtype".into(), subtype.into());
            let nested = Value::Object(inner.into_iter().collect());
            fields.entry("request".into()).or_insert_with(|| nested.clone());
            fields.entry("response".into()).or_insert(nested);
            Value::Object(fields.into_iter().collect()).to_string()
        },
    )
}

proptest! {
    #[test]
    fn written_frames_can_be_read(frame in frame()) {
        let mut line = Vec::new();
        encode(&frame, &mut line);
        prop_assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
        prop_assert_eq!(decode(std::str::from_utf8(&line).unwrap()), Ok(frame));
    }

    #[test]
    fn frame_like_lines_never_panic(line in frame_like_line()) {
        if let Ok(frame) = decode(&line) {
            let mut out = Vec::new();
            encode(&frame, &mut out);
            let again = decode(std::str::from_utf8(&out).unwrap());
            prop_assert!(again.is_ok(), "{:?}", again);
        }
    }

    #[test]
    fn any_text_never_panics(line in ".{0,80}") {
        drop(decode(&line));
    }
}
