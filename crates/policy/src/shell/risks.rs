//! Ordinary commands with arguments that run programs or write: no rule with a star covers those.

use super::Word;

/// Whether the arguments make the command one that only an exact rule may allow.
pub(super) fn found(name: &str, arguments: &[Word]) -> bool {
    match name {
        "awk" | "gawk" | "mawk" | "nawk" => arguments.iter().any(|word| word.value.literal().is_none_or(awk)),
        "sort" => any(arguments, &["--output", "--compress-program"], "o"),
        "tar" => {
            let long = [
                "--to-command",
                "--checkpoint-action",
                "--use-compress-program",
                "--info-script",
                "--new-volume-script",
                "--rsh-command",
                "--rmt-command",
            ];
            // The first word may be a bundle of letters without a dash.
            let bundle = arguments.first().and_then(|word| word.value.literal()).unwrap_or_default();
            any(arguments, &long, "IF") || (!bundle.contains(['/', '.']) && bundle.contains(['I', 'F']))
        }
        "zip" => any(arguments, &["--unzip-command", "--test"], "T"),
        _ => false,
    }
}

/// Whether a long option, also a shortened one, or a letter in a bundle is there.
fn any(arguments: &[Word], long: &[&str], letters: &str) -> bool {
    arguments.iter().any(|word| {
        let Some(text) = word.value.literal() else { return true };
        if text.starts_with("--") {
            let name = text.split_once('=').map_or(text, |(name, _)| name);
            return name.len() > 3 && long.iter().any(|option| option.starts_with(name));
        }
        text.strip_prefix('-').is_some_and(|bundle| bundle.contains(|letter| letters.contains(letter)))
    })
}

fn awk(text: &str) -> bool {
    if let Some(option) = text.strip_prefix('-') {
        let harmless = option.starts_with('F') || option.starts_with('v') || option == "-";
        return !harmless;
    }
    let text = text.replace("||", "");
    ["system", "getline", "@load", "@include", "|", ">"].iter().any(|risk| text.contains(risk))
}
