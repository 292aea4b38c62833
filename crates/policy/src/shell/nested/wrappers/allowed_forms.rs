//! Plain forms of wrappers, which an allow rule looks through.

use crate::shell::Word;

/// Number of words that an allow rule skips to look through a wrapper; `None` if this is not a plain form.
pub(crate) fn strip_length(words: &[Word]) -> Option<usize> {
    let texts: Vec<&str> = words.iter().take(16).map_while(|word| word.value.as_literal()).collect();
    let (name, arguments) = texts.split_first()?;
    let skipped = match *name {
        "timeout" => count_timeout_arguments(arguments)?,
        "nice" => match arguments {
            ["-n", number, ..] if is_integer(number) => 2,
            [number, ..]
                if number
                    .strip_prefix('-')
                    .is_some_and(|digits| !digits.is_empty() && is_integer(digits)) =>
            {
                1
            }
            _ => 0,
        },
        "stdbuf" => {
            let joined = |text: &&&str| {
                text.len() > 2
                    && ["-i", "-o", "-e"].iter().any(|option| text.starts_with(option))
                    && text.bytes().skip(2).all(|byte| byte.is_ascii_alphanumeric())
            };
            match arguments.iter().take_while(joined).count() {
                0 => return None,
                count => count,
            }
        }
        "command" => {
            arguments.iter().take_while(|text| matches!(**text, "-p")).count()
                + usize::from(arguments.iter().find(|text| **text != "-p") == Some(&"--"))
        }
        "time" | "nohup" | "builtin" | "noglob" | "xargs" => 0,
        _ => return None,
    };
    // The next word must be a command word, not another option.
    let next = arguments.get(skipped)?;
    (!next.starts_with('-') && !next.is_empty()).then_some(skipped + 1)
}

fn count_timeout_arguments(arguments: &[&str]) -> Option<usize> {
    let mut at = 0;
    loop {
        let text = *arguments.get(at)?;
        at += match text {
            "-v" | "--foreground" | "--preserve-status" => 1,
            "-k" if arguments.get(at + 1).is_some_and(|value| is_duration(value)) => 2,
            "-s" if arguments.get(at + 1).is_some_and(|value| is_signal(value)) => 2,
            _ if text.strip_prefix("--kill-after=").is_some_and(is_duration) => 1,
            _ if text.strip_prefix("--signal=").is_some_and(is_signal) => 1,
            _ if text.strip_prefix("-k").is_some_and(is_duration) => 1,
            _ => return is_duration(text).then_some(at + 1),
        };
    }
}

fn is_duration(text: &str) -> bool {
    let number = text.strip_suffix(['s', 'm', 'h', 'd']).unwrap_or(text);
    number.starts_with(|c: char| c.is_ascii_digit())
        && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
        && number.matches('.').count() <= 1
}

fn is_signal(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'-')
        && !text.starts_with('-')
}

fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}
