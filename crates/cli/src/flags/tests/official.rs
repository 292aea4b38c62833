//! Holds the lists of official flags and subcommands against the program.

use super::*;
use crate::official::{
    OFFICIAL_FLAGS, OFFICIAL_SUBCOMMANDS, OfficialFlag, OfficialValue, Support, is_subcommand,
    refuse_subcommand,
};

/// A valid value for a flag.
fn sample_value(spelled: &str) -> &'static str {
    match spelled {
        "--agents" => r#"{"r": {"description": "d", "prompt": "p"}}"#,
        "--autocompact" => "200k",
        "--effort" => "high",
        "--input-format" | "--output-format" => "text",
        "--json-schema" | "--managed-settings" | "--settings" => "{}",
        "--max-budget-usd" | "--max-thinking-tokens" | "--max-turns" | "--task-budget" => "1",
        "--mcp-config" => r#"{"mcpServers": {}}"#,
        "--permission-mode" => "plan",
        "--permission-prompts" => "host",
        "--prompt-suggestions" => "on",
        "--setting-sources" => "user",
        "--system-prompt-snapshot" => "off",
        "--thinking" => "adaptive",
        "--thinking-display" => "omitted",
        "--tools" => "Read",
        "-d" | "--debug" => "api",
        _ => "x",
    }
}

/// Parses a flag as this caller would pass it, with files that all contain the same text.
fn parse_flag(spelled: &str, value: OfficialValue, caller: Caller) -> Result<ParsedArgs, String> {
    let mut argv = match value {
        OfficialValue::None => vec![spelled.to_owned()],
        OfficialValue::Optional | OfficialValue::Required => {
            vec![spelled.to_owned(), sample_value(spelled).to_owned()]
        }
    };
    if spelled == "--rewind-files" {
        argv.push("--continue".to_owned());
    }
    parse(&argv, caller, &|_| Ok("text".into()))
}

#[test]
fn every_official_flag_behaves_as_its_row_says() {
    for OfficialFlag { spellings, value, support } in OFFICIAL_FLAGS {
        for (spelled, caller) in spellings.iter().flat_map(|name| [(name, Caller::User), (name, Caller::Sdk)])
        {
            let parsed = parse_flag(spelled, *value, caller);
            match support {
                Support::Supported | Support::Partly(_) => {
                    let ParsedArgs { args, warnings } =
                        parsed.unwrap_or_else(|error| panic!("{spelled}: {error}"));
                    assert_eq!((args.prompt, warnings), (None, vec![]), "{spelled} {caller:?}");
                }
                Support::NoEffect(reason) => {
                    let parsed = parsed.unwrap_or_else(|error| panic!("{spelled}: {error}"));
                    assert_eq!(parsed.warnings, [format!("{spelled} has no effect: {reason}.")]);
                    assert_eq!(parsed.args.prompt, None, "{spelled} takes its value");
                }
                Support::Refused(remedy) => {
                    let error = parsed.err().unwrap_or_else(|| panic!("{spelled} was accepted"));
                    assert!(error.starts_with(spelled) && error.contains(remedy), "{error}");
                }
            }
        }
    }
}

#[test]
fn flag_with_a_lost_place_or_instruction_is_refused_from_an_sdk() {
    let base = ["--input-format=stream-json", "--output-format=stream-json", "--verbose"];
    for flag in ["--cloud", "--cloud=x", "--teleport", "--managed-settings-in-initialize"] {
        let error = parse_args(&[&base[..], &[flag]].concat(), Caller::Sdk).unwrap_err();
        assert!(error.contains("not supported by whimbrel"), "{error}");
    }
}

#[test]
fn official_flags_are_named_once() {
    let mut names: Vec<&str> = OFFICIAL_FLAGS.iter().flat_map(|flag| flag.spellings).copied().collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn refused_subcommand_has_a_remedy() {
    for (name, support) in
        OFFICIAL_SUBCOMMANDS.iter().flat_map(|(names, support)| names.iter().map(move |name| (name, support)))
    {
        let refusal = refuse_subcommand(name);
        match support {
            Support::Refused(remedy) => {
                let text = refusal.unwrap_or_else(|| panic!("{name} is not refused"));
                assert!(text.contains(name) && text.contains(remedy), "{text}");
            }
            Support::Supported | Support::Partly(_) | Support::NoEffect(_) => {
                assert_eq!(refusal, None, "{name}");
            }
        }
        assert!(name.split(' ').next().is_some_and(is_subcommand), "{name}");
    }
}
