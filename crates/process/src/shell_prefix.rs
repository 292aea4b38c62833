//! A command of the user that is put in front of shell commands, for example to log them. Pure.

/// Variable with the command.
pub const SHELL_PREFIX_VARIABLE: &str = "CLAUDE_CODE_SHELL_PREFIX";

/// Returns the command that runs `prefix` with `command` as its only further argument. Without a prefix it is unchanged.
pub fn add_shell_prefix(prefix: Option<&str>, command: String) -> String {
    match prefix.map(str::trim).filter(|prefix| !prefix.is_empty()) {
        Some(prefix) => format!("{prefix} {}", quote_word(&command)),
        None => command,
    }
}

/// Quotes a word for the shell.
pub fn quote_word(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_is_one_argument_of_the_prefix() {
        let rows = [
            ("no prefix", None, "ls -l"),
            ("a blank prefix", Some(" "), "ls -l"),
            ("a program", Some("/opt/log.sh"), "/opt/log.sh 'ls -l'"),
            ("a program with arguments", Some(" A=1 log --to x "), "A=1 log --to x 'ls -l'"),
        ];
        for (name, prefix, expected) in rows {
            assert_eq!(add_shell_prefix(prefix, "ls -l".into()), expected, "{name}");
        }
        assert_eq!(add_shell_prefix(Some("p"), "echo 'a b'".into()), r"p 'echo '\''a b'\'''");
    }
}
