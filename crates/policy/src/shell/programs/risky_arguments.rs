//! Arguments that make an ordinary command run programs or write files, such as `system()` in awk, `sort -o` and
//! `tar -I`.

use crate::shell::Word;
use crate::shell::nested::options;

/// Returns true if the arguments make an ordinary command run programs or write files, so that it requires an exact
/// allow rule.
pub(super) fn has_risky_arguments(name: &str, arguments: &[Word]) -> bool {
    match name {
        "awk" | "gawk" | "mawk" | "nawk" => {
            arguments.iter().any(|word| word.value.as_literal().is_none_or(is_risky_awk_argument))
        }
        "sort" => has_risky_option(arguments, name, &["-o", "--output"]),
        "tar" => {
            // The first word may be a bundle of letters without a dash.
            let bundle = arguments.first().and_then(|word| word.value.as_literal()).unwrap_or_default();
            has_risky_option(arguments, name, &[])
                || (!bundle.contains(['/', '.']) && bundle.contains(['I', 'F']))
        }
        "zip" => has_risky_option(arguments, name, &["-T", "--test"]),
        _ => false,
    }
}

/// Returns true if one of the options with a command, or one of `others`, is given; also in a bundle or abbreviated.
fn has_risky_option(arguments: &[Word], name: &str, others: &[&str]) -> bool {
    let risky = |wanted: &dyn Fn(&str) -> bool| {
        options::find_options_with_command(name).iter().chain(others).any(|option| wanted(option))
    };
    arguments.iter().any(|word| {
        let Some(text) = word.value.as_literal() else { return true };
        if text.starts_with("--") {
            let name = text.split_once('=').map_or(text, |(name, _)| name);
            return name.len() > 3 && risky(&|option| option.starts_with(name));
        }
        let Some(bundle) = text.strip_prefix('-') else { return false };
        risky(&|option| {
            option.strip_prefix('-').is_some_and(|letter| letter.len() == 1 && bundle.contains(letter))
        })
    })
}

fn is_risky_awk_argument(text: &str) -> bool {
    if let Some(option) = text.strip_prefix('-') {
        let harmless = option.starts_with('F') || option.starts_with('v') || option == "-";
        return !harmless;
    }
    let text = text.replace("||", "");
    ["system", "getline", "@load", "@include", "|", ">"].iter().any(|risk| text.contains(risk))
}
