//! The completions for bash. They need no other package, and work with the bash 3.2 of macOS.

use std::fmt::Write as _;

use super::{CommandLine, first_words, second_words};
use crate::flags::{FlagDescription, FlagValue};
use crate::subcommands::{SessionFlags, Subcommand};
use crate::value_hint::ValueHint;

/// Functions of the script that do not depend on the tables.
const PRELUDE: &str = r#"# Completions of whimbrel for bash, printed by `whimbrel completions bash`.

# Suggests words.
_whimbrel_words() {
    COMPREPLY=($(compgen -W "$1" -- "$cur"))
}

# Suggests words for the last item of a list with commas.
_whimbrel_list() {
    local head=
    [[ $cur == *,* ]] && head=${cur%,*},
    COMPREPLY=($(compgen -P "$head" -W "$1" -- "${cur##*,}"))
}

# Suggests files (-f) or directories (-d).
_whimbrel_paths() {
    local IFS=$'\n'
    COMPREPLY=($(compgen "$1" -- "$cur"))
    compopt -o filenames 2>/dev/null
}
"#;

/// Beginning of the main function: the word at the cursor, the flag before it, and the subcommand.
const MAIN_START: &str = r#"
_whimbrel() {
    local cur=${COMP_WORDS[COMP_CWORD]} flag=${COMP_WORDS[COMP_CWORD-1]} attached= subcommand=
    COMPREPLY=()
    # bash splits --flag=value at the sign.
    if [[ $cur == = ]]; then
        cur= attached=1
    elif [[ $flag == = ]]; then
        flag=${COMP_WORDS[COMP_CWORD-2]} attached=1
    fi
    ((COMP_CWORD > 1)) && subcommand=${COMP_WORDS[1]}
    case $subcommand in
"#;

pub(super) fn render(line: &CommandLine) -> String {
    let flags = line.flags.iter().flat_map(FlagDescription::spellings).collect::<Vec<_>>().join(" ");
    let mut script = PRELUDE.to_owned();
    script += &render_session_values(line);
    let _ = write!(script, "\n_whimbrel_session_flags='{flags}'\n");
    script += MAIN_START;
    for subcommand in line.subcommands {
        script += &render_subcommand(subcommand, &line.tools);
    }
    let names = line.subcommand_names().join(" ");
    let _ = write!(
        script,
        "    esac
    _whimbrel_session_value && return
    if [[ $cur == -* ]]; then
        _whimbrel_words \"$_whimbrel_session_flags\"
    elif ((COMP_CWORD == 1)); then
        _whimbrel_words '{names}'
    fi
}}

complete -F _whimbrel whimbrel
"
    );
    script
}

/// Renders the function that suggests values for the flags of a session.
fn render_session_values(line: &CommandLine) -> String {
    let mut function = String::from(
        "\n# Suggests values of a flag of a session. Fails if the word is not the value of a flag.\n\
         _whimbrel_session_value() {\n    case $flag in\n",
    );
    for flag in &line.flags {
        let action = render_action(flag.hint, &line.tools);
        let patterns = flag.spellings().join("|");
        match flag.value {
            FlagValue::None => {}
            FlagValue::Optional(_) => {
                let _ = writeln!(function, "        {patterns}) [[ $attached ]] || return 1; {action} ;;");
            }
            FlagValue::Required(_) | FlagValue::List(_) => {
                let _ = writeln!(function, "        {patterns}) {action} ;;");
            }
        }
    }
    function + "        *) return 1 ;;\n    esac\n    return 0\n}\n"
}

fn render_action(hint: ValueHint, tools: &[String]) -> String {
    match hint {
        ValueHint::Any => ":".to_owned(),
        ValueHint::Words(words) => format!("_whimbrel_words '{}'", words.join(" ")),
        ValueHint::WordList(words) => format!("_whimbrel_list '{}'", words.join(" ")),
        ValueHint::ToolList => format!("_whimbrel_list '{}'", tools.join(" ")),
        ValueHint::File => "_whimbrel_paths -f".to_owned(),
        ValueHint::Directory => "_whimbrel_paths -d".to_owned(),
    }
}

/// Renders the case of a subcommand in the main function.
fn render_subcommand(subcommand: &Subcommand, tools: &[String]) -> String {
    let mut case = format!("        {})\n", subcommand.name);
    let valued = subcommand.flags.iter().filter_map(|flag| Some((flag.spellings.join("|"), flag.value?)));
    let rows: String = valued
        .map(|(patterns, hint)| {
            format!("                {patterns}) {}; return ;;\n", render_action(hint, tools))
        })
        .collect();
    if !rows.is_empty() {
        let _ = write!(case, "            case $flag in\n{rows}            esac\n");
    }
    let spellings = subcommand.flags.iter().flat_map(|flag| flag.spellings.iter().copied());
    let flags = spellings.chain(["--help"]).collect::<Vec<_>>().join(" ");
    let flags = match subcommand.session_flags {
        SessionFlags::Rejected => format!("'{flags}'"),
        SessionFlags::Accepted => {
            case += "            _whimbrel_session_value && return\n";
            format!("\"{flags} $_whimbrel_session_flags\"")
        }
    };
    let _ = write!(case, "            if [[ $cur == -* ]]; then\n                _whimbrel_words {flags}\n");
    let mut add_branch = |condition: String, action: String| {
        let _ = write!(case, "            elif {condition}; then\n                {action}\n");
    };
    let first = first_words(subcommand).join(" ");
    if !first.is_empty() {
        add_branch("((COMP_CWORD == 2))".into(), format!("_whimbrel_words '{first}'"));
    }
    for (word, second) in second_words(subcommand) {
        let condition = format!("((COMP_CWORD == 3)) && [[ ${{COMP_WORDS[2]}} == {word} ]]");
        add_branch(condition, format!("_whimbrel_words '{}'", second.join(" ")));
    }
    for command in subcommand.path_commands {
        let condition = format!("[[ ${{COMP_WORDS[*]:2}} == {}\\ * ]]", command.replace(' ', "\\ "));
        add_branch(condition, "_whimbrel_paths -f".into());
    }
    case + "            fi\n            return ;;\n"
}
