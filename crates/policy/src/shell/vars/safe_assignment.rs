//! Safe assignments: variables that do not change what a program does.

use crate::shell::WordValue;

/// Variables that only affect the appearance of output or enable something harmless.
const SAFE_VARIABLES: &[&str] = &[
    "NODE_ENV",
    "CI",
    "NO_COLOR",
    "FORCE_COLOR",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "TERM",
    "COLORTERM",
    "COLUMNS",
    "LINES",
    "LS_COLORS",
    "LSCOLORS",
    "GREP_COLOR",
    "GREP_COLORS",
    "GCC_COLORS",
    "TIME_STYLE",
    "BLOCK_SIZE",
    "BLOCKSIZE",
    "CHARSET",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "LC_TIME",
    "TZ",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "GOOS",
    "GOARCH",
    "GOEXPERIMENT",
    "GO111MODULE",
    "CGO_ENABLED",
    "PYTHONUNBUFFERED",
    "PYTHONDONTWRITEBYTECODE",
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD",
    "PYTEST_DEBUG",
    "GIT_TERMINAL_PROMPT",
    "DEBIAN_FRONTEND",
];

/// Returns true if the assignment may be ignored when an allow rule is matched.
pub(crate) fn is_safe_assignment(name: &str, raw: &str, value: &WordValue) -> bool {
    let Some(text) = value.as_literal() else { return false };
    let written = raw.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.,:/@%+=-'\"".contains(&byte));
    let plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.,:/@%+=-".contains(&byte));
    if !SAFE_VARIABLES.contains(&name) || !plain || !written {
        return false;
    }
    match name {
        "LANG" | "LANGUAGE" | "LC_ALL" | "LC_CTYPE" | "LC_TIME" => !text.contains('/'),
        "TZ" => !text.starts_with(':') && !text.starts_with('/') && !text.contains(".."),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn safe_assignments() {
        let rows = [
            ("NODE_ENV", "test", true),
            ("NODE_ENV", "'test'", true),
            ("NODE_ENV", "a b", false),
            ("NODE_ENV", "$(id)", false),
            ("PATH", "./bin", false),
            ("node_env", "x", false),
            ("LANG", "C.UTF-8", true),
            ("LANG", "../x", false),
            ("TZ", "Europe/Berlin", true),
            ("TZ", ":/etc/passwd", false),
            ("TZ", "a/../../x", false),
        ];
        for (name, raw, expected) in rows {
            let value = WordValue::Literal(raw.trim_matches('\'').to_owned());
            assert_eq!(is_safe_assignment(name, raw, &value), expected, "{name}={raw}");
        }
    }
}
