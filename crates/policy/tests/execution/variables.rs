//! Scripts that assign variables in different places, conditionally or in another shell, and commands that use them.
//! Each variable has an inherited value that no command may use.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use whimbrel_wire::permission::PermissionMode;

use crate::harness::Observed;
use crate::rule_setup::RuleSetup;

/// Inherited variables. `N` is not set.
pub(crate) const ENVIRONMENT: &[(&str, &str)] = &[("X", "secret.txt"), ("Y", "evil"), ("Z", ".env")];

const NAMES: &[&str] = &["X", "Y", "Z"];

const LITERAL_VALUES: &[&str] = &["a.txt", "x", "tool", "src", "'a b'", "''", "secret.txt", "evil"];

const COMPUTED_VALUES: &[&str] = &["$X", "\"$Y\"", "${Z}", "x$N", "$(true)"];

/// Forms of an assignment; `@` is the name and `%` the value.
const ASSIGN_FORMS: &[&str] = &[
    "@=%",
    "@=%",
    "@=%",
    "@=%",
    "@+=%",
    "export @=%",
    "declare @=%",
    "local @=%",
    "readonly @=%",
    "readonly @",
    "local @",
    "unset @",
    "read @ <<< %",
    "printf -v @ %s %",
    ": ${@:=%}",
    "@=% true",
    "@=% > none/none",
];

/// Forms of a use.
const USE_FORMS: &[&str] =
    &["cat $@", "cat \"$@\"", "cat < $@", "cat $N$@", "$@ x", "tool x; $@", "cat ${@}", "echo $@ | bash"];

/// Constructs around one or two scripts, `@` and `%`.
const COMPOUND_FORMS: &[&str] = &[
    "(@); %",
    "{ @; }; %",
    "@ && %",
    "@ || %",
    "true && @ || %",
    "fail && @; %",
    "fail || @; %",
    "true || @ && %",
    "@ & wait; %",
    "@ | true; %",
    "true | { @; }; %",
    "if fail; then @; fi; %",
    "if true; then @; else %; fi",
    "if fail; then :; elif true; then @; fi; %",
    "while fail; do @; done; %",
    "for X in x src; do @; done; %",
    "for Y in $Z; do @; done; %",
    "case x in y) @;; x) %;; esac",
    "case x in x) @;& y) %;; esac",
    "f() { @; }; %; f",
    "f() { @; }; f; %",
    "f() { @; }; %",
    "f() { local X=x; @; }; f; %",
    "bash -c '@'; %",
    "eval '@'; %",
    "echo \"$(@)\"; %",
    "{ @; } > none/none; %",
    "for i in 1 2; do %; @; done",
    "if fail; then @; else @; fi; %",
    "if fail; then @; elif true; then @; else @; fi; %",
    "case x in y) @;; *) @;; esac; %",
    "fail && @ || @; %",
    "true && @ || @; %",
    "g() { @; }; g; %",
    "trap '@' EXIT; %",
    "time @; %",
    "@\n%",
];

fn statements() -> impl Strategy<Value = String> {
    let value = prop_oneof![4 => select(LITERAL_VALUES), 1 => select(COMPUTED_VALUES)];
    let given = (select(ASSIGN_FORMS), select(NAMES), value)
        .prop_map(|(form, name, value)| form.replace('@', name).replacen('%', value, 1));
    let used = (select(USE_FORMS), select(NAMES)).prop_map(|(form, name)| form.replace('@', name));
    prop_oneof![3 => given, 2 => used]
}

/// Scripts that end in a use.
pub(crate) fn scripts() -> impl Strategy<Value = String> {
    let script = vec(statements(), 1..3).prop_map(|list| list.join("; "));
    let wrapped = script.prop_recursive(3, 12, 2, |inner| {
        (select(COMPOUND_FORMS), inner.clone(), inner).prop_map(|(form, first, second)| {
            form.replace('%', "\0").replace('@', &first).replace('\0', &second)
        })
    });
    let first = prop_oneof![1 => Just(""), 1 => Just("X=x; "), 2 => Just("X=x; Y=tool; Z=a.txt; ")];
    (first, wrapped, statements()).prop_map(|(first, script, last)| format!("{first}{script}; {last}"))
}

/// Everything is allowed except what the environment names.
pub(crate) fn rule_setup() -> RuleSetup {
    let deny = vec!["Read(secret.txt)", "Read(.env)", "Bash(evil *)"];
    RuleSetup { allow: vec!["Bash"], deny, mode: PermissionMode::Default }
}

/// Use of an inherited value, if any.
pub(crate) fn find_violation(seen: &Observed) -> Option<String> {
    let run = seen.runs.iter().find(|run| {
        let names = run.arguments.iter().any(|word| ["secret.txt", ".env"].contains(&word.as_str()));
        run.program == "evil" || run.input.contains("MARK-secret") || run.program == "cat" && names
    });
    run.map(|run| format!("{run:?} ran"))
}
