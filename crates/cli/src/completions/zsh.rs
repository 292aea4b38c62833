//! The completions for zsh, a function for a directory of `$fpath`.

use std::fmt::Write as _;

use super::{CommandLine, first_words, quote, second_words};
use crate::flags::{FlagDescription, FlagValue};
use crate::subcommands::{SessionFlags, Subcommand};
use crate::value_hint::ValueHint;

pub(super) fn render(line: &CommandLine) -> String {
    let mut script = String::from(
        "#compdef whimbrel
# Completions of whimbrel for zsh, printed by `whimbrel completions zsh`.

# Suggests words for the last item of a list with commas.
_whimbrel_list() {
  compset -P '*,'
  compadd -- \"$@\"
}

_whimbrel() {
  local -a session_flags subcommands
  session_flags=(
",
    );
    for flag in &line.flags {
        let _ = writeln!(script, "    {}", render_flag(flag, &line.tools));
    }
    script += "  )\n  subcommands=(\n";
    for Subcommand { name, meaning, .. } in line.subcommands {
        let _ = writeln!(script, "    {}", quote(&format!("{name}:{}", meaning.replace(':', "\\:"))));
    }
    script += "  )
  if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then
    _describe subcommand subcommands
    return
  fi
  local subcommand=$words[2]
  case $subcommand in
";
    for subcommand in line.subcommands {
        script += &render_subcommand(subcommand, &line.tools);
    }
    script
        + "    *)
      _arguments -S : $session_flags '*:prompt: ' ;;
  esac
}

if [[ $funcstack[1] == _whimbrel ]]; then
  _whimbrel \"$@\"
else
  compdef _whimbrel whimbrel
fi
"
}

/// Renders a flag of a session as an argument of `_arguments`.
fn render_flag(flag: &FlagDescription, tools: &[String]) -> String {
    let (separator, repeated, value) = match flag.value {
        FlagValue::None => ("", "", String::new()),
        FlagValue::Required(name) => ("=", "", render_value(":", name, flag.hint, tools)),
        FlagValue::Optional(name) => ("=-", "", render_value("::", name, flag.hint, tools)),
        FlagValue::List(name) => ("=", "*", render_value(":", name, flag.hint, tools)),
    };
    let with_separator = |spelling: &String| match (spelling.starts_with("--"), separator) {
        (false, "=") => format!("{spelling}+"),
        (false, _) => spelling.clone(),
        (true, separator) => format!("{spelling}{separator}"),
    };
    let spellings = flag.spellings();
    let forms: Vec<String> = spellings.iter().map(with_separator).collect();
    let description = format!("[{}]{value}", escape_brackets(flag.summary()));
    match &forms[..] {
        [only] => quote(&format!("{repeated}{only}{description}")),
        _ if repeated.is_empty() => {
            format!(
                "{}{{{}}}{}",
                quote(&format!("({})", spellings.join(" "))),
                forms.join(","),
                quote(&description)
            )
        }
        _ => format!("{}{{{}}}{}", quote(repeated), forms.join(","), quote(&description)),
    }
}

/// Renders the value of a flag: its name, and what is suggested.
fn render_value(colons: &str, name: &str, hint: ValueHint, tools: &[String]) -> String {
    format!("{colons}{name}:{}", render_action(hint, tools))
}

fn render_action(hint: ValueHint, tools: &[String]) -> String {
    match hint {
        ValueHint::Any => " ".to_owned(),
        ValueHint::Words(words) => format!("({})", words.join(" ")),
        ValueHint::WordList(words) => format!(" _whimbrel_list {}", words.join(" ")),
        ValueHint::ToolList => format!(" _whimbrel_list {}", tools.join(" ")),
        ValueHint::File => "_files".to_owned(),
        ValueHint::Directory => "_directories".to_owned(),
    }
}

/// Renders the case of a subcommand.
fn render_subcommand(subcommand: &Subcommand, tools: &[String]) -> String {
    let mut case = format!("    {})\n      shift words\n      (( CURRENT-- ))\n", subcommand.name);
    for (word, second) in second_words(subcommand) {
        let _ = write!(
            case,
            "      if (( CURRENT == 3 )) && [[ $words[2] == {word} ]]; then\n        compadd -- {}\n        return\n      \
             fi\n",
            second.join(" ")
        );
    }
    case += "      _arguments -S :";
    for flag in subcommand.flags {
        for spelling in flag.spellings {
            let separator = if spelling.starts_with("--") { "=" } else { "+" };
            let argument = match flag.value {
                None => format!("*{spelling}"),
                Some(hint) => format!("*{spelling}{separator}{}", render_value(":", "value", hint, tools)),
            };
            let _ = write!(case, " {}", quote(&argument));
        }
    }
    case += " '*--help'";
    if subcommand.session_flags == SessionFlags::Accepted {
        case += " $session_flags";
    }
    let first = first_words(subcommand).join(" ");
    if !first.is_empty() {
        let _ = write!(case, " '1:command:({first})'");
    }
    let rest = if subcommand.path_commands.is_empty() { " " } else { "_files" };
    let _ = writeln!(case, " '*:argument:{rest}' ;;");
    case
}

/// Escapes what would end a description.
fn escape_brackets(text: &str) -> String {
    text.replace('\\', "\\\\").replace('[', "\\[").replace(']', "\\]")
}
